#include "cli/render/json.h"

#include <string>

#include "cli/render/arming.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_words.h"
#include "cli/render/json_parts.h"
#include "cli/render/row_json.h"
#include "cli/render/schema_definitions.h"
#include "cli/render/schema_parts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/facts.h"

namespace lull {
namespace {

// For the calls in traced time ("judged"): how much of their blocked time the device
// was busy ("needed"), and how much idle time they caused ("wasted"). null where no
// call of the row was judged.
Json SyncPointsJson(const v1::Syncs& reply, bool gpu_truth) {
  return RowsJson(reply.sync_points(), [&](const v1::SyncPoint& point, Json& json) {
    if (!gpu_truth || point.judged_calls() == 0) {
      SetNull(json, {"judged_calls", "judged_blocked_ms", "needed_ms", "wasted_ms"});
    }
  });
}

Json ProcessesJson(const v1::ReportReply& reply) {
  return RowsJson(reply.processes(), [&](const v1::ProcessRow& row, Json& json) {
    json["recorded_ms"] = Ms(RecordedNs(row));
    json["native_stacks"] = row.native_stacks();
    json["gc_hook"] = row.gc_hook();
    json["cupti_version"] = TextOrNull(CudaVersionOfCupti(row.cupti_version()));
    json["step_hook"] = row.step_hook();
    json["scope_hook"] = row.scope_hook();
    if (row.traced_ns() == 0) SetNull(json, {"busy_ms"});
  });
}

Json SummaryJson(const v1::ReportReply& reply) {
  const v1::Shares& shares = reply.shares();
  Json advice =
      RowsJson(reply.advice().findings(), [](const v1::Finding& item, Json& json) {
        if (!item.has_site()) SetNull(json, {"site"});
      });
  return {{"working_ms", Ms(shares.working_ns())},
          {"launches", reply.launches()},
          {"sync_blocked_ms", Ms(reply.syncs().total_blocked_ns())},
          {"sync_calls", reply.syncs().total_calls()},
          {"data_wait_ms", Ms(shares.data_wait_ns())},
          {"host_wait_ms", Ms(reply.waits().total_ns())},
          {"gc_ms", Ms(reply.gc().total_ns())},
          {"gc_pauses", reply.gc().total_count()},
          {"allocated_bytes", reply.allocations().total_bytes()},
          {"allocations", reply.allocations().total_calls()},
          {"gpu_utilization_percent", OrNull(UtilizationPercent(reply.gpu()))},
          {"verdict", TextOrNull(reply.gpu().verdict())},
          {"advice", std::move(advice)}};
}

}  // namespace

Json SourcesJson(const v1::ReportReply& reply) {
  return RowsJson(reply.sources(), [](const v1::SourceDef& source, Json& json) {
    Json& lines = json["lines"] = Json::array();
    for (const std::string& line : source.lines()) lines.push_back(line);
  });
}

Json JobsJson(const v1::ListJobsReply& reply) {
  Json jobs = Json::array();
  for (const v1::Job& job : reply.jobs()) jobs.push_back(JobJson(job));
  Json answer = {{"jobs", std::move(jobs)}};
  if (!reply.damaged_jobs().empty()) {
    Json& damaged = answer["damaged_jobs"] = Json::array();
    for (const std::string& id : reply.damaged_jobs()) damaged.push_back(id);
  }
  return answer;
}

Json SyncsJson(const v1::ReportReply& reply) {
  return AnswerJson(
      reply, {{"gpu", GpuJson(reply.gpu())},
              {"sync_points", SyncPointsJson(reply.syncs(), HasGpuTruth(reply.gpu()))},
              {"total_blocked_ms", Ms(reply.syncs().total_blocked_ns())},
              {"total_calls", reply.syncs().total_calls()}});
}

Json AllocationsJson(const v1::ReportReply& reply) {
  return AnswerJson(
      reply, {{"allocation_sites", RowsJson(reply.allocations().allocation_sites())},
              {"total_bytes", reply.allocations().total_bytes()},
              {"total_calls", reply.allocations().total_calls()},
              {"unknown_frees", reply.allocations().unknown_frees()}});
}

Json GcJson(const v1::ReportReply& reply) {
  return AnswerJson(reply, {{"gc_pauses", RowsJson(reply.gc().gc_pauses())},
                            {"total_ms", Ms(reply.gc().total_ns())},
                            {"total_count", reply.gc().total_count()}});
}

Json WaitsJson(const v1::ReportReply& reply) {
  return AnswerJson(reply, {{"host_waits", RowsJson(reply.waits().host_waits())},
                            {"total_ms", Ms(reply.waits().total_ns())},
                            {"data_exact", reply.waits().data_exact()}});
}

Json ReportJson(const v1::ReportReply& reply) {
  return AnswerJson(
      reply, {{"summary", SummaryJson(reply)},
              {"gpu", GpuJson(reply.gpu())},
              {"causes", CausesJson(reply.gaps(), reply.gpu())},
              {"gaps", GapRowsJson(reply.gaps(), reply.gpu(), reply.job())},
              {"kernels", KernelRowsJson(reply.kernels())},
              {"copies", CopyRowsJson(reply.kernels())},
              {"steps", StepRowsJson(reply.steps())},
              {"step_totals", StepTotalsJson(reply.steps())},
              {"non_finite", NonFiniteJson(reply)},
              {"devices", DevicesJson(reply)},
              {"processes", ProcessesJson(reply)},
              {"sync_points", SyncPointsJson(reply.syncs(), HasGpuTruth(reply.gpu()))},
              {"allocation_sites", RowsJson(reply.allocations().allocation_sites())},
              {"memory", MemoryRowsJson(reply.memory(), false)},
              {"malloc_retries", RowsJson(reply.memory().retries())},
              {"gc_pauses", RowsJson(reply.gc().gc_pauses())},
              {"host_waits", RowsJson(reply.waits().host_waits())},
              {"data_exact", reply.waits().data_exact()},
              {"sources", SourcesJson(reply)}});
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// What the above prints.
namespace schema {
namespace {

Json SyncPoints() {
  return ListOf(
      RowOf<v1::SyncPoint>()
          .OrNull({"judged_calls", "judged_blocked_ms", "needed_ms", "wasted_ms"})
          .Done());
}

Json Processes() {
  return ListOf(RowOf<v1::ProcessRow>()
                    .Set("native_stacks", Count())
                    .Set("gc_hook", Count())
                    .Set("cupti_version", TextOrNull())
                    .Set("step_hook", Count())
                    .Set("scope_hook", Count())
                    .OrNull({"busy_ms"})
                    .Done());
}

Json NonFinite() {
  return ListOf(RowOf<v1::NonFinite>().Erase("step_known").OrNull({"step"}).Done());
}

Json Summary() {
  return Object({{"working_ms", Amount()},
                 {"launches", Count()},
                 {"sync_blocked_ms", Amount()},
                 {"sync_calls", Count()},
                 {"data_wait_ms", Amount()},
                 {"host_wait_ms", Amount()},
                 {"gc_ms", Amount()},
                 {"gc_pauses", Count()},
                 {"allocated_bytes", Count()},
                 {"allocations", Count()},
                 {"gpu_utilization_percent", AmountOrNull()},
                 {"verdict", TextOrNull()},
                 {"advice", ListOf(RowOf<v1::Finding>().OrNull({"site"}).Done())}});
}

}  // namespace

Json Syncs() {
  return Answer({{"gpu", Ref("gpu")},
                 {"sync_points", SyncPoints()},
                 {"total_blocked_ms", Amount()},
                 {"total_calls", Count()}});
}

Json Allocations() {
  return Answer({{"allocation_sites", ListOfRows<v1::AllocationSite>()},
                 {"total_bytes", Count()},
                 {"total_calls", Count()},
                 {"unknown_frees", Count()}});
}

Json Gc() {
  return Answer({{"gc_pauses", ListOfRows<v1::GcPause>()},
                 {"total_ms", Amount()},
                 {"total_count", Count()}});
}

Json Waits() {
  return Answer({{"host_waits", ListOfRows<v1::HostWait>()},
                 {"total_ms", Amount()},
                 {"data_exact", Flag()}});
}

Json Report() {
  return Answer({{"summary", Summary()},
                 {"gpu", Ref("gpu")},
                 {"causes", CauseRows()},
                 {"gaps", GapRows()},
                 {"kernels", KernelRows()},
                 {"copies", CopyRows()},
                 {"steps", StepRows()},
                 {"step_totals", Object(StepTotals())},
                 {"non_finite", NonFinite()},
                 {"devices", Devices()},
                 {"processes", Processes()},
                 {"sync_points", SyncPoints()},
                 {"allocation_sites", ListOfRows<v1::AllocationSite>()},
                 {"memory", MemoryRows(/*details=*/false)},
                 {"malloc_retries", ListOfRows<v1::MallocRetries>()},
                 {"gc_pauses", ListOfRows<v1::GcPause>()},
                 {"host_waits", ListOfRows<v1::HostWait>()},
                 {"data_exact", Flag()},
                 {"sources",
                  ListOf(RowOf<v1::SourceDef>().Set("lines", ListOf(Text())).Done())}});
}

Json Jobs() {
  return Object({{"jobs", ListOf(Ref("job"))}, {"damaged_jobs", ListOf(Text())}},
                {"damaged_jobs"});
}

}  // namespace schema
}  // namespace lull
