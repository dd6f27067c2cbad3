#include <string>
#include <utility>
#include <vector>

#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_words.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "cli/render/steps_facts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

// The parts that the device decides exist in traced steps alone. Nobody knows when a
// process's first step began: it takes no time on the wire, and has null here.
Json StepJson(const v1::StepRow& step, bool traced) {
  Json json = RowJson(step);
  json["traced"] = traced;
  if (!traced)
    SetNull(json, {"kernel_ms", "memcpy_ms", "memset_ms", "communication_ms"});
  if (step.duration_ns() == 0) {
    SetNull(json, {"duration_ms", "runtime_ms", "data_ms", "host_ms", "other_ms"});
  }
  return json;
}

}  // namespace

Json GpuJson(const v1::Gpu& gpu) {
  Json json = RowJson(gpu);
  if (!HasGpuTruth(gpu))
    SetNull(json, {"busy_ms", "kernel_ms", "idle_ms", "unknown_ms"});
  for (const char* text : {"schedule", "verdict", "missing"}) {
    json[text] = TextOrNull(json[text].get<std::string>());
  }
  Insert(json, "devices", "windows", ActiveWindows(gpu));
  Insert(json, "explained_ms", "utilization_percent", OrNull(UtilizationPercent(gpu)));
  Insert(json, "explained_ms", "explained_percent",
         If(gpu.idle_ns() > 0, Percent(D(gpu.explained_ns()), D(gpu.idle_ns()))));
  json.erase("explained_ms");
  json["spans"] = RowsJson(gpu.spans());
  return json;
}

Json CausesJson(const v1::Gaps& reply, const v1::Gpu& gpu) {
  return RowsJson(reply.causes(), [&](const v1::CauseRow& row, Json& json) {
    json["cause"] = CauseKey(row.cause());
    json["share_percent"] = Percent(D(row.total_ns()), D(gpu.idle_ns()));
  });
}

// The innermost regions in which a row's gaps lay.
Json GapRegionsJson(const v1::GapRow& gap) {
  Json rows = Json::array();
  for (const v1::GapRegion& region : gap.regions()) {
    rows.push_back(
        {{"name", region.name()},
         {"path", std::vector<std::string>(region.path().begin(), region.path().end())},
         {"total_ms", Ms(region.total_ns())},
         {"share_percent", Percent(D(region.total_ns()), D(gap.total_ns()))}});
  }
  return rows;
}

Json GapRowsJson(const v1::Gaps& reply, const v1::Gpu& gpu, const v1::Job& job) {
  return RowsJson(reply.gaps(), [&](const v1::GapRow& gap, Json& json) {
    json["cause"] = CauseKey(gap.cause());
    json["api"] = TextOrNull(gap.culprit_api());
    Insert(json, "max_ms", "share_percent",
           Percent(D(gap.total_ns()), D(gpu.idle_ns())));
    Insert(json, "samples", "doing",
           DoingJson(gap, job.imported().line_is_function_start()));
    Insert(json, "doing", "regions", GapRegionsJson(gap));
  });
}

Json KernelRowsJson(const v1::Kernels& reply) {
  return RowsJson(reply.kernels(), [&](const v1::KernelRow& row, Json& json) {
    json["blocks_per_sm"] = IfPositive(row.blocks_per_sm());
    json["occupancy_percent"] = IfPositive(row.occupancy_percent());
    json["operator"] = TextOrNull(row.operator_name());
    Insert(json, "total_ms", "avg_ms",
           If(row.calls() > 0, Ms(row.total_ns()) / D(row.calls())));
    Insert(json, "max_ms", "share_percent",
           Percent(D(row.total_ns()), D(reply.total_ns())));
  });
}

Json CopyRowsJson(const v1::Kernels& reply) {
  return RowsJson(reply.copies(), [&](const v1::CopyRow& row, Json& json) {
    json["memory"] = TextOrNull(row.memory());
    // Bytes per nanosecond are gigabytes (10^9) per second.
    json["gb_per_s"] = If(row.total_ns() > 0, D(row.bytes()) / D(row.total_ns()));
  });
}

Json StepRowsJson(const v1::Steps& reply) {
  Json rows = Json::array();
  for (const v1::StepRow& step : reply.steps()) {
    rows.push_back(StepJson(step, step.traced()));
  }
  return rows;
}

// What is no step: parts of set-up ("setup") and of what comes after it ("steady").
// Exact times have no samples, and no interval.
Json PhasesJson(const v1::Steps& reply) {
  Json rows = Json::array();
  for (const v1::PhasePart& part : reply.phase_parts()) {
    const bool sampled = part.has_share();
    const v1::SampledShare& share = part.share();
    rows.push_back({{"phase", part.phase() == v1::PHASE_SETUP ? "setup" : "steady"},
                    {"part", KeyOf(part.kind(), "other")},
                    {"time_ms", Ms(part.time_ns())},
                    {"share_percent", If(sampled, share.percent())},
                    {"low_percent", If(sampled, share.low_percent())},
                    {"high_percent", If(sampled, share.high_percent())},
                    {"samples", If(sampled, part.samples())}});
  }
  return rows;
}

Json StepTotalsJson(const v1::Steps& reply) {
  Json json;
  json["source"] = TextOrNull(reply.source());
  json["count"] = reply.count();
  bool traced = AnyStepTraced(reply);
  if (reply.count() == 0) {
    json["median"] = nullptr;
  } else {
    // It is of no one process, number or moment.
    Json median = StepJson(reply.median(), traced);
    for (const char* key : {"pid", "rank", "number", "start_ms"}) median.erase(key);
    json["median"] = std::move(median);
  }
  json["gpu_utilization_percent"] = If(traced, reply.gpu_utilization_percent());
  json["sm_efficiency_percent"] = IfPositive(reply.sm_efficiency_percent());
  json["occupancy_percent"] = IfPositive(reply.occupancy_percent());
  json["tensor_core_percent"] = If(traced, reply.tensor_core_percent());
  json["phases"] = PhasesJson(reply);
  return json;
}

Json NonFiniteJson(const v1::ReportReply& reply) {
  return RowsJson(reply.non_finite(), [&](const v1::NonFinite& row, Json& json) {
    json.erase("step_known");
    if (!row.step_known()) SetNull(json, {"step"});
  });
}

Json DevicesJson(const v1::ReportReply& reply) {
  return RowsJson(reply.devices(), [&](const v1::DeviceRow& row, Json& json) {
    json["name"] = TextOrNull(row.name());
    if (row.multiprocessors() == 0) SetNull(json, {"multiprocessors"});
    json["compute_capability"] = IfPositive(row.compute_capability() / 10.0);
    json["idle_ms"] = Ms(row.traced_ns() - row.busy_ns());
    if (row.traced_ns() == 0) SetNull(json, {"busy_ms", "idle_ms"});
  });
}

Json GapsJson(const v1::ReportReply& reply) {
  return AnswerJson(reply,
                    {{"gpu", GpuJson(reply.gpu())},
                     {"devices", DevicesJson(reply)},
                     {"region", TextOrNull(reply.gaps().region())},
                     {"causes", CausesJson(reply.gaps(), reply.gpu())},
                     {"gaps", GapRowsJson(reply.gaps(), reply.gpu(), reply.job())}});
}

Json KernelsJson(const v1::ReportReply& reply) {
  return AnswerJson(
      reply, {{"gpu", GpuJson(reply.gpu())},
              {"kernels", KernelRowsJson(reply.kernels())},
              {"copies", CopyRowsJson(reply.kernels())},
              {"total_ms", MsIf(HasGpuTruth(reply.gpu()), reply.kernels().total_ns())},
              {"total_calls", reply.kernels().total_calls()}});
}

Json StepsJson(const v1::ReportReply& reply) {
  Json json = {{"gpu", GpuJson(reply.gpu())}, {"steps", StepRowsJson(reply.steps())}};
  json.update(StepTotalsJson(reply.steps()));
  return AnswerJson(reply, json);
}

// What the above prints.
namespace schema {
namespace {

Json Doing() {
  return ListOf(Object({{"file", Text()},
                        {"line", Whole()},
                        {"function", Text()},
                        {"samples", Count()},
                        {"share_percent", AmountOrNull()},
                        {"self_percent", AmountOrNull()},
                        {"low_percent", AmountOrNull()},
                        {"high_percent", AmountOrNull()},
                        {"own_percent", AmountOrNull()},
                        {"own_low_percent", AmountOrNull()},
                        {"own_high_percent", AmountOrNull()},
                        {"callee", OrNull(Ref("site"))},
                        {"line_is_function_start", Flag()}},
                       {"line_is_function_start"}));
}

Json GapRegions() {
  return ListOf(Object({{"name", Text()},
                        {"path", ListOf(Text())},
                        {"total_ms", Amount()},
                        {"share_percent", Amount()}}));
}

Row Step() {
  return RowOf<v1::StepRow>()
      .OrNull({"kernel_ms", "memcpy_ms", "memset_ms", "communication_ms"})
      .OrNull({"duration_ms", "runtime_ms", "data_ms", "host_ms", "other_ms"});
}

Json PhaseParts() {
  return ListOf(
      Object({{"phase", OneOf({"setup", "steady"})},
              {"part", OneOf(KeysOf(*v1::PhasePartKind_descriptor(), "other"))},
              {"time_ms", Amount()},
              {"share_percent", AmountOrNull()},
              {"low_percent", AmountOrNull()},
              {"high_percent", AmountOrNull()},
              {"samples", OrNull(Count())}}));
}

}  // namespace

Json CauseRows() {
  return ListOf(RowOf<v1::CauseRow>()
                    .Set("cause", Causes())
                    .Set("share_percent", Amount())
                    .Done());
}

Json GapRows() {
  return ListOf(RowOf<v1::GapRow>()
                    .Set("cause", Causes())
                    .Set("api", TextOrNull())
                    .Insert("max_ms", "share_percent", Amount())
                    .Insert("samples", "doing", Doing())
                    .Insert("doing", "regions", GapRegions())
                    .Done());
}

Json KernelRows() {
  return ListOf(RowOf<v1::KernelRow>()
                    .OrNull({"blocks_per_sm", "occupancy_percent", "operator"})
                    .Insert("total_ms", "avg_ms", AmountOrNull())
                    .Insert("max_ms", "share_percent", Amount())
                    .Done());
}

Json CopyRows() {
  return ListOf(
      RowOf<v1::CopyRow>().OrNull({"memory"}).Set("gb_per_s", AmountOrNull()).Done());
}

Json StepRows() { return ListOf(Step().Done()); }

Json StepTotals() {
  Json median =
      Step().Erase("pid").Erase("rank").Erase("number").Erase("start_ms").Done();
  return {{"source", TextOrNull()},
          {"count", Count()},
          {"median", OrNull(std::move(median))},
          {"gpu_utilization_percent", OrNull(Number())},
          {"sm_efficiency_percent", AmountOrNull()},
          {"occupancy_percent", AmountOrNull()},
          {"tensor_core_percent", OrNull(Number())},
          {"phases", PhaseParts()}};
}

Json Devices() {
  return ListOf(RowOf<v1::DeviceRow>()
                    .OrNull({"name", "multiprocessors", "busy_ms"})
                    .Set("compute_capability", AmountOrNull())
                    .Set("idle_ms", AmountOrNull())
                    .Done());
}

Json Gaps() {
  return Answer({{"gpu", Ref("gpu")},
                 {"devices", Devices()},
                 {"region", TextOrNull()},
                 {"causes", CauseRows()},
                 {"gaps", GapRows()}});
}

Json Kernels() {
  return Answer({{"gpu", Ref("gpu")},
                 {"kernels", KernelRows()},
                 {"copies", CopyRows()},
                 {"total_ms", AmountOrNull()},
                 {"total_calls", Count()}});
}

Json Steps() {
  Json body = {{"gpu", Ref("gpu")}, {"steps", StepRows()}};
  body.update(StepTotals());
  return Answer(std::move(body));
}

}  // namespace schema
}  // namespace lull
