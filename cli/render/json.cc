#include "cli/render/json.h"

#include <string>

#include "cli/render/advice.h"
#include "cli/render/format.h"

namespace lull {
namespace {

double Ms(uint64_t ns) { return static_cast<double>(ns) / 1e6; }

Json JobJson(const v1::Job& job) {
  Json json = {
      {"id", job.id()},
      {"name", job.name()},
      {"command", job.command()},
      {"host", job.host()},
      {"started_at", FormatUtc(job.start_realtime_ns())},
      {"duration_ms", Ms(job.duration_ns())},
      {"exit_status", nullptr},
      {"ended", job.ended()},
      {"events", job.events()},
      {"processes", job.processes()},
      {"working_processes", job.working_processes()},
  };
  if (job.exit_status_known()) json["exit_status"] = job.exit_status();
  return json;
}

Json SiteJson(const v1::Site& site) {
  return {{"file", site.file()}, {"line", site.line()}, {"function", site.function()}};
}

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

Json LossesJson(const v1::Losses& losses) {
  return {
      {"events_committed", losses.events_committed()},
      {"events_stored", losses.events_stored()},
      {"events_lost", losses.events_lost()},
      {"lost_ring_full", losses.lost_ring_full()},
      {"lost_no_ring", losses.lost_no_ring()},
      {"lost_relay", losses.lost_relay()},
      {"stacks_rejected", losses.stacks_rejected()},
      {"reentered", losses.reentered()},
      {"corrupt_segments", losses.corrupt_segments()},
      {"thinning", losses.thinning()},
      {"short_waits", losses.short_waits()},
      {"short_waits_ms", Ms(losses.short_waits_ns())},
      {"thinned_launches", losses.thinned_launches()},
  };
}

Json OverheadJson(const v1::Overhead& overhead) {
  return {{"self_ms", Ms(overhead.self_ns())},
          {"percent", overhead.percent()},
          {"relay_cpu_ms", Ms(overhead.relay_cpu_ns())},
          {"budget_percent", overhead.budget_percent()}};
}

// What every answer ends with.
template <typename Reply>
void AddTail(Json& json, const Reply& reply) {
  json["losses"] = LossesJson(reply.losses());
  json["overhead"] = OverheadJson(reply.overhead());
}

Json SyncPointsJson(const v1::SyncsReply& reply) {
  Json rows = Json::array();
  for (const v1::SyncPoint& point : reply.sync_points()) {
    rows.push_back({{"api", point.api()},
                    {"calls", point.calls()},
                    {"blocked_ms", Ms(point.blocked_ns())},
                    {"max_ms", Ms(point.max_ns())},
                    {"bytes", point.bytes()},
                    {"site", SiteJson(point.site())},
                    {"stack", StackJson(point.stack(), false)},
                    {"native_stack", StackJson(point.native_stack(), true)}});
  }
  return rows;
}

Json AllocationSitesJson(const v1::AllocationsReply& reply) {
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

Json GcPausesJson(const v1::GcReply& reply) {
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

Json HostWaitsJson(const v1::WaitsReply& reply) {
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
                 {"rank", nullptr},
                 {"command", row.command()},
                 {"gpu", row.gpu()},
                 {"torch", row.torch()},
                 {"duration_ms", Ms(row.duration_ns())},
                 {"events", row.events()},
                 {"launches", row.launches()},
                 {"blocked_ms", Ms(row.blocked_ns())},
                 {"data_wait_ms", Ms(row.data_wait_ns())},
                 {"gc_ms", Ms(row.gc_ns())},
                 {"native_stacks", row.native_stacks()},
                 {"gc_hook", row.gc_hook()},
                 {"corrupt", row.corrupt()}};
    if (row.rank() >= 0) json["rank"] = row.rank();
    rows.push_back(std::move(json));
  }
  return rows;
}

Json SummaryJson(const v1::ReportReply& reply) {
  Shares shares = SharesOf(reply);
  Json advice = Json::array();
  for (const Advice& item : WhatToChangeFirst(reply)) {
    advice.push_back({{"finding", item.finding},
                      {"advice", item.advice},
                      {"time_ms", Ms(item.time_ns)}});
  }
  return {{"working_ms", Ms(shares.working_ns)},
          {"launches", reply.launches()},
          {"sync_blocked_ms", Ms(reply.syncs().total_blocked_ns())},
          {"sync_calls", reply.syncs().total_calls()},
          {"data_wait_ms", Ms(shares.data_wait_ns)},
          {"host_wait_ms", Ms(reply.waits().total_ns())},
          {"gc_ms", Ms(reply.gc().total_ns())},
          {"gc_pauses", reply.gc().total_count()},
          {"allocated_bytes", reply.allocations().total_bytes()},
          {"allocations", reply.allocations().total_calls()},
          {"advice", std::move(advice)}};
}

}  // namespace

Json JobsJson(const v1::ListJobsReply& reply) {
  Json jobs = Json::array();
  for (const v1::Job& job : reply.jobs()) jobs.push_back(JobJson(job));
  return {{"jobs", std::move(jobs)}};
}

Json SyncsJson(const v1::SyncsReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"sync_points", SyncPointsJson(reply)},
               {"total_blocked_ms", Ms(reply.total_blocked_ns())},
               {"total_calls", reply.total_calls()}};
  AddTail(json, reply);
  return json;
}

Json AllocationsJson(const v1::AllocationsReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"allocation_sites", AllocationSitesJson(reply)},
               {"total_bytes", reply.total_bytes()},
               {"total_calls", reply.total_calls()},
               {"unknown_frees", reply.unknown_frees()}};
  AddTail(json, reply);
  return json;
}

Json GcJson(const v1::GcReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"gc_pauses", GcPausesJson(reply)},
               {"total_ms", Ms(reply.total_ns())},
               {"total_count", reply.total_count()}};
  AddTail(json, reply);
  return json;
}

Json WaitsJson(const v1::WaitsReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"host_waits", HostWaitsJson(reply)},
               {"total_ms", Ms(reply.total_ns())}};
  AddTail(json, reply);
  return json;
}

Json ReportJson(const v1::ReportReply& reply) {
  Json json = {{"job", JobJson(reply.job())},
               {"summary", SummaryJson(reply)},
               {"processes", ProcessesJson(reply)},
               {"sync_points", SyncPointsJson(reply.syncs())},
               {"allocation_sites", AllocationSitesJson(reply.allocations())},
               {"gc_pauses", GcPausesJson(reply.gc())},
               {"host_waits", HostWaitsJson(reply.waits())}};
  AddTail(json, reply);
  return json;
}

std::string JsonText(const Json& json) {
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace lull
