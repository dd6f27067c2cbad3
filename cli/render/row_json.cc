#include "cli/render/row_json.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/render/json_parts.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/enum_key.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"

namespace lull {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// Whether a row says anything of this field.
bool IsTold(const FieldDescriptor& field) {
  if (field.is_repeated()) return field.message_type() == v1::Frame::descriptor();
  if (field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    return field.message_type() == v1::Site::descriptor();
  }
  return field.cpp_type() != FieldDescriptor::CPPTYPE_FLOAT;
}

struct Key {
  std::string name;
  bool is_time = false;  // in nanoseconds on the wire
};

Key KeyOfField(const FieldDescriptor& field) {
  std::string name = field.has_json_name() ? field.json_name() : field.name();
  absl::string_view unit = name;
  if (absl::ConsumeSuffix(&unit, "_ns")) return {absl::StrCat(unit, "_ms"), true};
  return {std::move(name)};
}

bool HasModules(const Key& key) { return key.name == "native_stack"; }

// Of a field that is told, and is no list.
void Scalar(const Message& row, const FieldDescriptor& field, Json* json) {
  const auto& reflection = *row.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      *json = reflection.GetUInt32(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_UINT64:
      *json = reflection.GetUInt64(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      *json = RankJson(reflection.GetInt32(row, &field));
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      *json = reflection.GetInt64(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      *json = reflection.GetDouble(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      *json = reflection.GetBool(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_STRING:
      *json = reflection.GetString(row, &field);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      *json =
          KeyOf(*field.enum_type(), reflection.GetEnumValue(row, &field), "unknown");
      return;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      *json =
          SiteJson(static_cast<const v1::Site&>(reflection.GetMessage(row, &field)));
      return;
    default:
      return;
  }
}

Json ScalarSchema(const FieldDescriptor& field, bool is_time) {
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
    case FieldDescriptor::CPPTYPE_UINT64:
      return is_time ? schema::Amount() : schema::Count();
    case FieldDescriptor::CPPTYPE_INT32:
      return schema::OrNull(schema::Count());
    case FieldDescriptor::CPPTYPE_INT64:
      return schema::Whole();
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return schema::Number();
    case FieldDescriptor::CPPTYPE_BOOL:
      return schema::Flag();
    case FieldDescriptor::CPPTYPE_ENUM:
      return schema::OneOf(schema::KeysOf(*field.enum_type(), "unknown"));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return schema::Ref("site");
    default:
      return schema::Text();
  }
}

}  // namespace

void Insert(Json& json, const std::string& after, const std::string& key, Json value) {
  Json out = Json::object();
  for (auto& [name, held] : json.items()) {
    out[name] = std::move(held);
    if (name == after) out[key] = std::move(value);
  }
  json = std::move(out);
}

Json RowJson(const Message& row) {
  const auto& fields = *row.GetDescriptor();
  Json json = Json::object();
  for (int i = 0; i < fields.field_count(); ++i) {
    const FieldDescriptor& field = *fields.field(i);
    if (!IsTold(field)) continue;
    Key key = KeyOfField(field);
    if (field.is_repeated()) {
      json[key.name] =
          StackJson(row.GetReflection()->GetRepeatedFieldRef<v1::Frame>(row, &field),
                    HasModules(key));
      continue;
    }
    Json value;
    Scalar(row, field, &value);
    json[key.name] = key.is_time ? Json(Ms(value.get<uint64_t>())) : std::move(value);
  }
  return json;
}

Json RowSchema(const google::protobuf::Descriptor& row) {
  Json properties = Json::object();
  for (int i = 0; i < row.field_count(); ++i) {
    const FieldDescriptor& field = *row.field(i);
    if (!IsTold(field)) continue;
    Key key = KeyOfField(field);
    properties[key.name] =
        field.is_repeated()
            ? schema::ListOf(schema::Ref(HasModules(key) ? "native_frame" : "frame"))
            : ScalarSchema(field, key.is_time);
  }
  return schema::Object(std::move(properties));
}

}  // namespace lull
