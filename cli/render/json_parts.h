// Objects that several answers of JSON share. What is not known is null.
#pragma once

#include <cstdint>
#include <optional>

#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

inline double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

// null when nothing is known.
template <typename T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
inline Json MsIf(bool known, uint64_t ns) {
  return known ? Json(Ms(ns)) : Json(nullptr);
}
// Figures that are 0 on the wire where they are not known.
inline Json IfPositive(double value) { return value > 0 ? Json(value) : Json(nullptr); }
inline Json TextOrNull(const std::string& text) {
  return text.empty() ? Json(nullptr) : Json(text);
}
inline Json RankJson(int32_t rank) { return rank >= 0 ? Json(rank) : Json(nullptr); }

Json JobJson(const v1::Job& job);
Json SiteJson(const v1::Site& site);

template <typename Frames>
Json StackJson(const Frames& frames, bool native) {
  Json stack = Json::array();
  for (const v1::Frame& frame : frames) {
    Json json = {
        {"function", frame.function()}, {"file", frame.file()}, {"line", frame.line()}};
    if (native) json["module"] = frame.module();
    stack.push_back(std::move(json));
  }
  return stack;
}

// A whole answer: the job, `body`, and what every answer ends with.
Json AnswerJson(const v1::ReportReply& reply, const Json& body);

}  // namespace lull
