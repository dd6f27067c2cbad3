#include "cli/render/schema_parts.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "daemon/words/enum_key.h"

namespace lull::schema {
namespace {

Json Typed(const char* type) { return {{"type", type}}; }

Json NotBelow0(const char* type) { return {{"type", type}, {"minimum", 0}}; }

Json Closed(Json properties, const std::vector<const char*>& optional) {
  Json required = Json::array();
  for (const auto& [key, value] : properties.items()) {
    if (std::find(optional.begin(), optional.end(), key) == optional.end()) {
      required.push_back(key);
    }
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

// Adds the definitions that `schema` refers to, and those that they refer to.
void Define(const Json& schema, Json& definitions) {
  if (schema.is_object() && schema.contains("$ref")) {
    const std::string path = schema["$ref"];
    const std::string name = path.substr(path.rfind('/') + 1);
    if (definitions.contains(name)) return;
    Json definition = Definition(name);
    definitions[name] = definition;
    Define(definition, definitions);
  } else if (schema.is_structured()) {
    for (const auto& [key, value] : schema.items()) Define(value, definitions);
  }
}

}  // namespace

Json Text() { return Typed("string"); }
Json Flag() { return Typed("boolean"); }
Json Whole() { return Typed("integer"); }
Json Number() { return Typed("number"); }
Json Null() { return Typed("null"); }
Json Count() { return NotBelow0("integer"); }
Json Amount() { return NotBelow0("number"); }

Json OneOf(std::vector<std::string> words) {
  return {{"type", "string"}, {"enum", std::move(words)}};
}

Json ListOf(Json items) { return {{"type", "array"}, {"items", std::move(items)}}; }

Json MapOf(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Json Ref(const char* definition) {
  return {{"$ref", absl::StrCat("#/$defs/", definition)}};
}

Json OrNull(Json schema) {
  if (!schema.contains("type") || !schema["type"].is_string()) {
    return {{"anyOf", Json::array({std::move(schema), Null()})}};
  }
  if (schema["type"] == "object") {
    return {{"anyOf", Json::array({std::move(schema), Null()})}};
  }
  schema["type"] = Json::array({schema["type"], "null"});
  if (schema.contains("enum")) schema["enum"].push_back(nullptr);
  return schema;
}

std::vector<std::string> KeysOf(const google::protobuf::EnumDescriptor& words,
                                const char* unknown) {
  std::vector<std::string> keys;
  for (int i = 0; i < words.value_count(); ++i) {
    keys.push_back(lull::KeyOf(words, words.value(i)->number(), unknown));
  }
  if (std::find(keys.begin(), keys.end(), unknown) == keys.end()) {
    keys.emplace_back(unknown);
  }
  return keys;
}

Json Object(Json properties, std::initializer_list<const char*> optional) {
  return Closed(std::move(properties), optional);
}

Row::Row(const google::protobuf::Descriptor& message)
    : properties_(RowSchema(message)["properties"]) {}

Row& Row::OrNull(std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    properties_[key] = schema::OrNull(std::move(properties_[key]));
  }
  return *this;
}

Row& Row::Insert(const char* after, const char* key, Json schema) {
  lull::Insert(properties_, after, key, std::move(schema));
  return *this;
}

Row& Row::Set(const char* key, Json schema) {
  properties_[key] = std::move(schema);
  return *this;
}

Row& Row::Erase(const char* key) {
  properties_.erase(key);
  return *this;
}

Json Row::Done() const { return Closed(properties_, {}); }

Json Document(const std::string& title, Json schema) {
  Json definitions = Json::object();
  Define(schema, definitions);
  Json document = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                   {"title", title}};
  document.update(schema);
  if (!definitions.empty()) document["$defs"] = std::move(definitions);
  return document;
}

}  // namespace lull::schema
