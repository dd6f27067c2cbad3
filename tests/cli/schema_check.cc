#include "tests/cli/schema_check.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"

namespace lull::testing {
namespace {

std::string TypeOf(const Json& value) {
  if (value.is_null()) return "null";
  if (value.is_boolean()) return "boolean";
  if (value.is_number_integer()) return "integer";
  if (value.is_number()) return "number";
  if (value.is_string()) return "string";
  return value.is_array() ? "array" : "object";
}

std::vector<std::string> Types(const Json& schema) {
  const Json& type = schema["type"];
  if (type.is_array()) return type.get<std::vector<std::string>>();
  return {type.get<std::string>()};
}

bool Has(const Json& list, const Json& value) {
  return std::find(list.begin(), list.end(), value) != list.end();
}

// Definitions go by their names: what one place has seen holds for all.
std::string Name(const Json& schema) { return schema["$ref"].get<std::string>(); }

}  // namespace

std::string SchemaCheck::CheckObject(const Json& schema, const Json& value,
                                     const std::string& where, Seen* seen) const {
  if (!schema.contains("properties")) {
    for (const auto& [key, one] : value.items()) {
      seen->insert(absl::StrCat(where, " has a key"));
      std::string wrong =
          Check(schema["additionalProperties"], one, absl::StrCat(where, ".*"), seen);
      if (!wrong.empty()) return wrong;
    }
    return "";
  }
  auto next = value.begin();
  for (const auto& [key, of_key] : schema["properties"].items()) {
    const std::string inner = absl::StrCat(where, ".", key);
    if (next == value.end() || next.key() != key) {
      if (Has(schema["required"], key)) return absl::StrCat(inner, " is missing");
      seen->insert(absl::StrCat(inner, " absent"));
      continue;
    }
    if (!Has(schema["required"], key)) seen->insert(absl::StrCat(inner, " present"));
    std::string wrong = Check(of_key, next.value(), inner, seen);
    if (!wrong.empty()) return wrong;
    ++next;
  }
  if (next == value.end()) return "";
  return absl::StrCat(where, ": nothing is said of ", next.key());
}

std::string SchemaCheck::Check(const Json& schema, const Json& value,
                               const std::string& where, Seen* seen) const {
  if (schema.contains("$ref")) {
    const Json::json_pointer pointer(Name(schema).substr(1));
    return Check(root_[pointer], value, Name(schema), seen);
  }
  if (schema.contains("anyOf")) {
    std::string all;
    for (size_t i = 0; i < schema["anyOf"].size(); ++i) {
      const std::string inner = absl::StrCat(where, "|", i);
      Seen more;
      std::string wrong = Check(schema["anyOf"][i], value, inner, &more);
      if (wrong.empty()) {
        seen->insert(inner);
        seen->insert(more.begin(), more.end());
        return "";
      }
      absl::StrAppend(&all, all.empty() ? "" : "; ", wrong);
    }
    return all;
  }
  const std::string type = TypeOf(value);
  const std::vector<std::string> types = Types(schema);
  if (std::find(types.begin(), types.end(), type) == types.end()) {
    return absl::StrCat(where, " is ", type, ": ", value.dump().substr(0, 80));
  }
  seen->insert(absl::StrCat(where, " ", type));
  if (schema.contains("enum")) {
    if (!Has(schema["enum"], value)) return absl::StrCat(where, ": ", value.dump());
    seen->insert(absl::StrCat(where, " ", value.dump()));
  }
  if (schema.contains("minimum") && value.is_number() && value < schema["minimum"]) {
    return absl::StrCat(where, ": ", value.dump());
  }
  if (type == "object") return CheckObject(schema, value, where, seen);
  if (type == "array") {
    for (const Json& one : value) {
      std::string wrong = Check(schema["items"], one, absl::StrCat(where, "[]"), seen);
      if (!wrong.empty()) return wrong;
    }
  }
  return "";
}

void SchemaCheck::Allowed(const Json& schema, const std::string& where,
                          Seen* all) const {
  if (schema.contains("$ref")) {
    const std::string name = Name(schema);
    if (!all->insert(absl::StrCat(name, " object")).second) return;
    return Allowed(root_[Json::json_pointer(name.substr(1))], name, all);
  }
  if (schema.contains("anyOf")) {
    for (size_t i = 0; i < schema["anyOf"].size(); ++i) {
      const std::string inner = absl::StrCat(where, "|", i);
      all->insert(inner);
      Allowed(schema["anyOf"][i], inner, all);
    }
    return;
  }
  for (const std::string& type : Types(schema)) {
    all->insert(absl::StrCat(where, " ", type));
  }
  if (schema.contains("enum")) {
    for (const Json& word : schema["enum"]) {
      all->insert(absl::StrCat(where, " ", word.dump()));
    }
  }
  if (schema.contains("items"))
    Allowed(schema["items"], absl::StrCat(where, "[]"), all);
  if (!schema.contains("properties")) return;
  for (const auto& [key, of_key] : schema["properties"].items()) {
    const std::string inner = absl::StrCat(where, ".", key);
    if (!Has(schema["required"], key)) {
      all->insert(absl::StrCat(inner, " present"));
      all->insert(absl::StrCat(inner, " absent"));
    }
    Allowed(of_key, inner, all);
  }
}

std::set<std::string> SchemaCheck::Unseen() const {
  Seen all;
  Allowed(root_, "", &all);
  Seen unseen;
  std::set_difference(all.begin(), all.end(), seen_.begin(), seen_.end(),
                      std::inserter(unseen, unseen.end()));
  return unseen;
}

}  // namespace lull::testing
