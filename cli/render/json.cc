#include "cli/render/json.h"

#include <string>

#include "cli/render/arming.h"
#include "cli/render/gpu_lines.h"
#include "cli/render/gpu_words.h"
#include "cli/render/json_gpu.h"
#include "cli/render/json_memory.h"
#include "cli/render/json_parts.h"
#include "daemon/words/enum_key.h"
#include "daemon/words/facts.h"

namespace lull {
namespace {

// Of the calls in traced time ("judged"): how much of their blocked time the device
// was busy ("needed"), and how much idle time they caused ("wasted"). null where no
// call of the row was judged.
Json SyncPointsJson(const v1::Syncs& reply, bool gpu_truth) {
  Json rows = Json::array();
  for (const v1::SyncPoint& point : reply.sync_points()) {
    bool judged = gpu_truth && point.judged_calls() > 0;
    rows.push_back(
        {{"api", point.api()},
         {"calls", point.calls()},
         {"blocked_ms", Ms(point.blocked_ns())},
         {"max_ms", Ms(point.max_ns())},
         {"bytes", point.bytes()},
         {"judged_calls", judged ? Json(point.judged_calls()) : Json(nullptr)},
         {"judged_blocked_ms", MsIf(judged, point.judged_blocked_ns())},
         {"needed_ms", MsIf(judged, point.needed_ns())},
         {"wasted_ms", MsIf(judged, point.wasted_ns())},
         {"site", SiteJson(point.site())},
         {"stack", StackJson(point.stack(), false)},
         {"native_stack", StackJson(point.native_stack(), true)}});
  }
  return rows;
}

Json AllocationSitesJson(const v1::Allocations& reply) {
  Json rows = Json::array();
  for (const v1::AllocationSite& site : reply.allocation_sites()) {
    rows.push_back({{"allocator", site.allocator()},
                    {"calls", site.calls()},
                    {"frees", site.frees()},
                    {"bytes", site.bytes()},
                    {"live_bytes", site.live_bytes()},
                    {"peak_bytes", site.peak_bytes()},
                    {"blocked_ms", Ms(site.blocked_ns())},
                    {"site", SiteJson(site.site())},
                    {"stack", StackJson(site.stack(), false)},
                    {"native_stack", StackJson(site.native_stack(), true)}});
  }
  return rows;
}

Json GcPausesJson(const v1::GcPauses& reply) {
  Json rows = Json::array();
  for (const v1::GcPause& pause : reply.gc_pauses()) {
    rows.push_back({{"generation", pause.generation()},
                    {"count", pause.count()},
                    {"total_ms", Ms(pause.total_ns())},
                    {"max_ms", Ms(pause.max_ns())},
                    {"collected", pause.collected()},
                    {"uncollectable", pause.uncollectable()},
                    {"site", SiteJson(pause.site())},
                    {"stack", StackJson(pause.stack(), false)}});
  }
  return rows;
}

Json HostWaitsJson(const v1::HostWaits& reply) {
  Json rows = Json::array();
  for (const v1::HostWait& wait : reply.host_waits()) {
    rows.push_back({{"kind", wait.kind()},
                    {"api", wait.api()},
                    {"count", wait.count()},
                    {"total_ms", Ms(wait.total_ns())},
                    {"max_ms", Ms(wait.max_ns())},
                    {"site", SiteJson(wait.site())},
                    {"stack", StackJson(wait.stack(), false)}});
  }
  return rows;
}

Json ProcessesJson(const v1::ReportReply& reply) {
  Json rows = Json::array();
  for (const v1::ProcessRow& row : reply.processes()) {
    Json json = {{"pid", row.pid()},
                 {"parent_pid", row.parent_pid()},
                 {"rank", RankJson(row.rank())},
                 {"command", row.command()},
                 {"gpu", row.gpu()},
                 {"torch", row.torch()},
                 {"duration_ms", Ms(row.duration_ns())},
                 {"recorded_ms", Ms(RecordedNs(row))},
                 {"events", row.events()},
                 {"launches", row.launches()},
                 {"blocked_ms", Ms(row.blocked_ns())},
                 {"data_wait_ms", Ms(row.data_wait_ns())},
                 {"gc_ms", Ms(row.gc_ns())},
                 {"native_stacks", row.native_stacks()},
                 {"gc_hook", row.gc_hook()},
                 {"corrupt", row.corrupt()},
                 {"cupti_state", KeyOf(row.cupti_state())},
                 {"cupti_version", TextOrNull(CudaVersionOfCupti(row.cupti_version()))},
                 {"cupti_result", row.cupti_result()},
                 {"step_hook", row.step_hook()},
                 {"scope_hook", row.scope_hook()},
                 {"traced_ms", Ms(row.traced_ns())},
                 {"busy_ms", MsIf(row.traced_ns() > 0, row.busy_ns())},
                 {"run_delay_ms", Ms(row.run_delay_ns())},
                 {"preemptions", row.preemptions()},
                 {"migrations", row.migrations()}};
    rows.push_back(std::move(json));
  }
  return rows;
}

Json SummaryJson(const v1::ReportReply& reply) {
  const v1::Shares& shares = reply.shares();
  Json advice = Json::array();
  for (const v1::Finding& item : reply.advice().findings()) {
    advice.push_back(
        {{"rule", item.rule()},
         {"finding", item.finding()},
         {"advice", item.advice()},
         {"time_ms", Ms(item.time_ns())},
         {"win_ms", Ms(item.win_ns())},
         {"of_gpu_time", item.of_gpu_time()},
         {"site", item.has_site() ? SiteJson(item.site()) : Json(nullptr)}});
  }
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

Json JobsJson(const v1::ListJobsReply& reply) {
  Json jobs = Json::array();
  for (const v1::Job& job : reply.jobs()) jobs.push_back(JobJson(job));
  return {{"jobs", std::move(jobs)}};
}

Json SyncsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gpu", GpuJson(reply.gpu())},
               {"sync_points", SyncPointsJson(reply.syncs(), HasGpuTruth(reply.gpu()))},
               {"total_blocked_ms", Ms(reply.syncs().total_blocked_ns())},
               {"total_calls", reply.syncs().total_calls()}};
  AddTail(json, reply);
  return json;
}

Json AllocationsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"allocation_sites", AllocationSitesJson(reply.allocations())},
               {"total_bytes", reply.allocations().total_bytes()},
               {"total_calls", reply.allocations().total_calls()},
               {"unknown_frees", reply.allocations().unknown_frees()}};
  AddTail(json, reply);
  return json;
}

Json GcJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gc_pauses", GcPausesJson(reply.gc())},
               {"total_ms", Ms(reply.gc().total_ns())},
               {"total_count", reply.gc().total_count()}};
  AddTail(json, reply);
  return json;
}

Json WaitsJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"host_waits", HostWaitsJson(reply.waits())},
               {"total_ms", Ms(reply.waits().total_ns())},
               {"data_exact", reply.waits().data_exact()}};
  AddTail(json, reply);
  return json;
}

Json ReportJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"summary", SummaryJson(reply)},
               {"gpu", GpuJson(reply.gpu())},
               {"causes", CausesJson(reply.gaps(), reply.gpu())},
               {"gaps", GapRowsJson(reply.gaps(), reply.gpu())},
               {"kernels", KernelRowsJson(reply.kernels())},
               {"copies", CopyRowsJson(reply.kernels())},
               {"steps", StepRowsJson(reply.steps())},
               {"step_totals", StepTotalsJson(reply.steps())},
               {"non_finite", NonFiniteJson(reply)},
               {"devices", DevicesJson(reply)},
               {"processes", ProcessesJson(reply)},
               {"sync_points", SyncPointsJson(reply.syncs(), HasGpuTruth(reply.gpu()))},
               {"allocation_sites", AllocationSitesJson(reply.allocations())},
               {"memory", MemoryRowsJson(reply.memory(), false)},
               {"malloc_retries", MallocRetriesJson(reply.memory())},
               {"gc_pauses", GcPausesJson(reply.gc())},
               {"host_waits", HostWaitsJson(reply.waits())},
               {"data_exact", reply.waits().data_exact()}};
  AddTail(json, reply);
  return json;
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lull
