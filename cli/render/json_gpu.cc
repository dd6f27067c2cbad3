#include "cli/render/json_gpu.h"

#include <utility>

#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_words.h"
#include "cli/render/json_hot.h"
#include "cli/render/json_parts.h"
#include "cli/render/steps_facts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/format.h"
#include "daemon/words/sample_words.h"

namespace lull {
namespace {

Json SpansJson(const v1::Gpu& gpu) {
  Json spans = Json::array();
  for (const v1::TracingSpan& span : gpu.spans()) {
    spans.push_back({{"pid", span.pid()},
                     {"start_ms", Ms(span.start_ns())},
                     {"duration_ms", Ms(span.duration_ns())},
                     {"state", KeyOf(span.state())},
                     {"reason", KeyOf(span.reason())}});
  }
  return spans;
}

// The parts that the device decides exist in traced steps alone. Nobody knows when a
// process's first step began: it takes no time on the wire, and has null here.
Json StepJson(const v1::StepRow& step, bool traced) {
  const bool timed = step.duration_ns() != 0;
  return {{"pid", step.pid()},
          {"rank", RankJson(step.rank())},
          {"number", step.number()},
          {"start_ms", Ms(step.start_ns())},
          {"duration_ms", MsIf(timed, step.duration_ns())},
          {"traced", traced},
          {"kernel_ms", MsIf(traced, step.kernel_ns())},
          {"memcpy_ms", MsIf(traced, step.memcpy_ns())},
          {"memset_ms", MsIf(traced, step.memset_ns())},
          {"communication_ms", MsIf(traced, step.communication_ns())},
          {"runtime_ms", MsIf(timed, step.runtime_ns())},
          {"data_ms", MsIf(timed, step.data_ns())},
          {"host_ms", MsIf(timed, step.host_ns())},
          {"other_ms", MsIf(timed, step.other_ns())}};
}

}  // namespace

Json GpuJson(const v1::Gpu& gpu) {
  bool truth = HasGpuTruth(gpu);
  return {{"mode", KeyOf(gpu.mode())},
          {"schedule", TextOrNull(gpu.schedule())},
          {"devices", gpu.devices()},
          {"windows", ActiveWindows(gpu)},
          {"traced_ms", Ms(gpu.traced_ns())},
          {"busy_ms", MsIf(truth, gpu.busy_ns())},
          {"kernel_ms", MsIf(truth, gpu.kernel_ns())},
          {"idle_ms", MsIf(truth, gpu.idle_ns())},
          {"unknown_ms", MsIf(truth, gpu.unknown_ns())},
          {"explained_percent",
           gpu.idle_ns() > 0 ? Json(Percent(D(gpu.explained_ns()), D(gpu.idle_ns())))
                             : Json(nullptr)},
          {"utilization_percent", OrNull(UtilizationPercent(gpu))},
          {"verdict", TextOrNull(gpu.verdict())},
          {"missing", TextOrNull(gpu.missing())},
          {"kernels", gpu.kernels()},
          {"copies", gpu.copies()},
          {"memsets", gpu.memsets()},
          {"graphs", gpu.graphs()},
          {"cupti_dropped", gpu.cupti_dropped()},
          {"records_lost", gpu.records_lost()},
          {"records_bad", gpu.records_bad()},
          {"late_operations", gpu.late_operations()},
          {"yielded_ms", Ms(gpu.yielded_ns())},
          {"spans", SpansJson(gpu)}};
}

Json CausesJson(const v1::Gaps& reply, const v1::Gpu& gpu) {
  Json rows = Json::array();
  for (const v1::CauseRow& row : reply.causes()) {
    rows.push_back({{"cause", CauseKey(row.cause())},
                    {"count", row.count()},
                    {"total_ms", Ms(row.total_ns())},
                    {"max_ms", Ms(row.max_ns())},
                    {"share_percent", Percent(D(row.total_ns()), D(gpu.idle_ns()))}});
  }
  return rows;
}

Json GapRowsJson(const v1::Gaps& reply, const v1::Gpu& gpu) {
  Json rows = Json::array();
  for (const v1::GapRow& gap : reply.gaps()) {
    rows.push_back({{"cause", CauseKey(gap.cause())},
                    {"before", SiteJson(gap.before())},
                    {"after", SiteJson(gap.after())},
                    {"culprit", SiteJson(gap.culprit())},
                    {"api", TextOrNull(gap.culprit_api())},
                    {"count", gap.count()},
                    {"total_ms", Ms(gap.total_ns())},
                    {"max_ms", Ms(gap.max_ns())},
                    {"share_percent", Percent(D(gap.total_ns()), D(gpu.idle_ns()))},
                    {"samples", gap.samples()},
                    {"doing", DoingJson(gap)},
                    {"stack", StackJson(gap.stack(), false)},
                    {"native_stack", StackJson(gap.native_stack(), true)}});
  }
  return rows;
}

Json KernelRowsJson(const v1::Kernels& reply) {
  Json rows = Json::array();
  for (const v1::KernelRow& row : reply.kernels()) {
    rows.push_back(
        {{"name", row.name()},
         {"calls", row.calls()},
         {"total_ms", Ms(row.total_ns())},
         {"avg_ms",
          row.calls() > 0 ? Json(Ms(row.total_ns()) / D(row.calls())) : Json(nullptr)},
         {"min_ms", Ms(row.min_ns())},
         {"max_ms", Ms(row.max_ns())},
         {"share_percent", Percent(D(row.total_ns()), D(reply.total_ns()))},
         {"tensor_core", row.tensor_core()},
         {"blocks_per_sm", IfPositive(row.blocks_per_sm())},
         {"occupancy_percent", IfPositive(row.occupancy_percent())},
         {"site", SiteJson(row.site())},
         {"operator", TextOrNull(row.operator_name())},
         {"stack", StackJson(row.stack(), false)}});
  }
  return rows;
}

Json CopyRowsJson(const v1::Kernels& reply) {
  Json rows = Json::array();
  for (const v1::CopyRow& row : reply.copies()) {
    bool timed = row.total_ns() > 0;
    rows.push_back({{"direction", row.direction()},
                    {"memory", TextOrNull(row.memory())},
                    {"count", row.count()},
                    {"bytes", row.bytes()},
                    {"total_ms", Ms(row.total_ns())},
                    // Bytes per nanosecond are gigabytes (10^9) per second.
                    {"gb_per_s", timed ? Json(D(row.bytes()) / D(row.total_ns()))
                                       : Json(nullptr)}});
  }
  return rows;
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
    const bool exact = !part.has_share();
    const v1::SampledShare& share = part.share();
    rows.push_back(
        {{"phase", part.phase() == v1::PHASE_SETUP ? "setup" : "steady"},
         {"part", KeyOf(part.kind(), "other")},
         {"time_ms", Ms(part.time_ns())},
         {"share_percent", exact ? Json(nullptr) : Json(share.percent())},
         {"low_percent", exact ? Json(nullptr) : Json(share.low_percent())},
         {"high_percent", exact ? Json(nullptr) : Json(share.high_percent())},
         {"samples", exact ? Json(nullptr) : Json(part.samples())}});
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
  json["gpu_utilization_percent"] =
      traced ? Json(reply.gpu_utilization_percent()) : Json(nullptr);
  json["sm_efficiency_percent"] = IfPositive(reply.sm_efficiency_percent());
  json["occupancy_percent"] = IfPositive(reply.occupancy_percent());
  json["tensor_core_percent"] =
      traced ? Json(reply.tensor_core_percent()) : Json(nullptr);
  json["phases"] = PhasesJson(reply);
  return json;
}

Json NonFiniteJson(const v1::ReportReply& reply) {
  Json rows = Json::array();
  for (const v1::NonFinite& row : reply.non_finite()) {
    rows.push_back({{"pid", row.pid()},
                    {"rank", RankJson(row.rank())},
                    {"value", row.value()},
                    {"time_ms", Ms(row.time_ns())},
                    {"step", row.step_known() ? Json(row.step()) : Json(nullptr)},
                    {"site", SiteJson(row.site())},
                    {"stack", StackJson(row.stack(), false)}});
  }
  return rows;
}

Json DevicesJson(const v1::ReportReply& reply) {
  Json rows = Json::array();
  for (const v1::DeviceRow& row : reply.devices()) {
    bool traced = row.traced_ns() > 0;
    rows.push_back(
        {{"pid", row.pid()},
         {"device", row.device()},
         {"name", TextOrNull(row.name())},
         {"multiprocessors",
          row.multiprocessors() > 0 ? Json(row.multiprocessors()) : Json(nullptr)},
         {"compute_capability", IfPositive(row.compute_capability() / 10.0)},
         {"total_bytes", row.total_bytes()},
         {"traced_ms", Ms(row.traced_ns())},
         {"busy_ms", MsIf(traced, row.busy_ns())}});
  }
  return rows;
}

Json GapsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gpu", GpuJson(reply.gpu())},
               {"causes", CausesJson(reply.gaps(), reply.gpu())},
               {"gaps", GapRowsJson(reply.gaps(), reply.gpu())}};
  AddTail(json, reply);
  return json;
}

Json KernelsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gpu", GpuJson(reply.gpu())},
               {"kernels", KernelRowsJson(reply.kernels())},
               {"copies", CopyRowsJson(reply.kernels())},
               {"total_ms", MsIf(HasGpuTruth(reply.gpu()), reply.kernels().total_ns())},
               {"total_calls", reply.kernels().total_calls()}};
  AddTail(json, reply);
  return json;
}

Json StepsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gpu", GpuJson(reply.gpu())},
               {"steps", StepRowsJson(reply.steps())}};
  json.update(StepTotalsJson(reply.steps()));
  AddTail(json, reply);
  return json;
}

}  // namespace lull
