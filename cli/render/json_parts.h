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
template <typename T>
Json If(bool known, const T& value) {
  return known ? Json(value) : Json(nullptr);
}
inline Json MsIf(bool known, uint64_t ns) { return If(known, Ms(ns)); }
// Figures that are 0 on the wire where they are not known.
inline Json IfPositive(double value) { return If(value > 0, value); }
inline Json TextOrNull(const std::string& text) { return If(!text.empty(), text); }
inline Json RankJson(int32_t rank) { return If(rank >= 0, rank); }

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

// GPU truth. "windows" counts the spans in which operations were recorded; all times
// but "traced_ms" are null where there is no GPU truth, and "missing" says why.
Json GpuJson(const v1::Gpu& gpu);
Json CausesJson(const v1::Gaps& reply, const v1::Gpu& gpu);
Json GapRowsJson(const v1::Gaps& reply, const v1::Gpu& gpu, const v1::Job& job);
Json KernelRowsJson(const v1::Kernels& reply);
Json CopyRowsJson(const v1::Kernels& reply);
Json StepRowsJson(const v1::Steps& reply);
// Everything else of the answer on steps: source, count, median, shares.
Json StepTotalsJson(const v1::Steps& reply);
Json NonFiniteJson(const v1::ReportReply& reply);
Json DevicesJson(const v1::ReportReply& reply);

// The key "doing" of a row of idle time. `of_functions`: lines are those where
// functions begin (ImportInfo).
Json DoingJson(const v1::GapRow& gap, bool of_functions);

// Memory; in a report without `details`: points and what made up the peaks. "device" is
// null for the host and where it is not known, "reserved_*" where the allocator does
// not say, "growth" where none was found.
Json MemoryRowsJson(const v1::Memory& reply, bool details);

// A whole answer: the job, `body`, and what every answer ends with.
Json AnswerJson(const v1::ReportReply& reply, const Json& body);

// Schemas of what these print.
namespace schema {

Json CauseRows();
Json GapRows();
Json KernelRows();
Json CopyRows();
Json StepRows();
Json StepTotals();  // properties
Json Devices();
Json MemoryRows(bool details);

}  // namespace schema
}  // namespace lull
