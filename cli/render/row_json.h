// Rows of an answer as JSON, by the names of their fields.
#pragma once

#include <initializer_list>
#include <string>

#include "cli/render/json.h"
#include "google/protobuf/message.h"

namespace lull {

// All fields of `row` in the order of the proto, under their names (or json_name): of
// times `_ms` in place of `_ns`, enums by their keys, sites and stacks as everywhere,
// negative int32 (a rank that is not known) as null. Other messages, and lists of
// anything but frames, are left to the caller; so is what else has a null.
//
//   Json json = RowJson(row);
//   if (!row.step_known()) SetNull(json, {"step"});
Json RowJson(const google::protobuf::Message& row);

// What is not known, of `json`.
inline void SetNull(Json& json, std::initializer_list<const char*> keys) {
  for (const char* key : keys) json[key] = nullptr;
}

// A key of `json` behind another one.
void Insert(Json& json, const std::string& after, const std::string& key, Json value);

// `adapt(row, json)` has the last word on each.
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
