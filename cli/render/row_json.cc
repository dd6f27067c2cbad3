#include "cli/render/row_json.h"

#include <string>

#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/render/json_parts.h"
#include "daemon/words/enum_key.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/reflection.h"

namespace lull {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// False: nothing that a row says of this field.
bool Scalar(const Message& row, const FieldDescriptor& field, Json* json) {
  const auto& reflection = *row.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_UINT32:
      *json = reflection.GetUInt32(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_UINT64:
      *json = reflection.GetUInt64(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_INT32:
      *json = RankJson(reflection.GetInt32(row, &field));
      return true;
    case FieldDescriptor::CPPTYPE_INT64:
      *json = reflection.GetInt64(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_DOUBLE:
      *json = reflection.GetDouble(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_BOOL:
      *json = reflection.GetBool(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_STRING:
      *json = reflection.GetString(row, &field);
      return true;
    case FieldDescriptor::CPPTYPE_ENUM:
      *json =
          KeyOf(*field.enum_type(), reflection.GetEnumValue(row, &field), "unknown");
      return true;
    case FieldDescriptor::CPPTYPE_MESSAGE:
      if (field.message_type() != v1::Site::descriptor()) return false;
      *json =
          SiteJson(static_cast<const v1::Site&>(reflection.GetMessage(row, &field)));
      return true;
    default:
      return false;
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
    std::string name = field.has_json_name() ? field.json_name() : field.name();
    Json value;
    if (field.is_repeated()) {
      if (field.message_type() != v1::Frame::descriptor()) continue;
      json[name] =
          StackJson(row.GetReflection()->GetRepeatedFieldRef<v1::Frame>(row, &field),
                    /*native=*/name == "native_stack");
      continue;
    }
    if (!Scalar(row, field, &value)) continue;
    absl::string_view unit = name;
    if (absl::ConsumeSuffix(&unit, "_ns")) {
      json[std::string(unit) + "_ms"] = Ms(value.get<uint64_t>());
    } else {
      json[name] = std::move(value);
    }
  }
  return json;
}

}  // namespace lull
