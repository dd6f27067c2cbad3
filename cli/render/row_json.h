// Rows of an answer as JSON, by the names of their fields.
#pragma once

#include <initializer_list>
#include <string>

#include "cli/render/json.h"
#include "google/protobuf/message.h"

namespace lull {

// All fields of `row` in the order of the proto, under their names (or json_name).
// Times get `_ms` in place of `_ns`, enums become their keys, sites and stacks are as
// everywhere, and a negative int32 (a rank that is not known) becomes null. The caller
// adds other messages, lists of anything but frames, and any other null.
//
//   Json json = RowJson(row);
//   if (!row.step_known()) SetNull(json, {"step"});
Json RowJson(const google::protobuf::Message& row);

// What RowJson() makes of any row of this message, as a JSON Schema
// (cli/render/schema_parts.h).
Json RowSchema(const google::protobuf::Descriptor& row);

// Sets keys of `json` to null that are not known.
inline void SetNull(Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) json[key] = nullptr;
}

// Adds a key to `json`, behind another one.
void Insert(Json& json, const std::string& after, const std::string& key, Json value);

// `adapt(row, json)` may change each of them at the end.
template <typename Rows, typename Adapt>
Json RowsJson(const Rows& rows, Adapt adapt) {
  Json json = Json::array();
  for (const auto& row : rows) adapt(row, json.emplace_back(RowJson(row)));
  return json;
}
template <typename Rows>
Json RowsJson(const Rows& rows) {
  return RowsJson(rows, [](const auto&, Json&) {});
}

}  // namespace lull
