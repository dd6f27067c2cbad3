#include "cli/render/json_parts.h"

#include "cli/render/arming.h"
#include "daemon/words/facts.h"
#include "daemon/words/format.h"

namespace lull {
namespace {

Json RecordedJson(const v1::Job& job) {
  if (!job.partly_recorded()) {
    return Json::array({{{"start_ms", 0.0}, {"end_ms", Ms(job.duration_ns())}}});
  }
  Json spans = Json::array();
  for (const v1::Job::Stretch& span : job.recorded()) {
    spans.push_back({{"start_ms", Ms(span.start_ns())}, {"end_ms", Ms(span.end_ns())}});
  }
  return spans;
}

}  // namespace

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
      {"attached", job.attached()},
      {"events", job.events()},
      {"processes", job.processes()},
      {"working_processes", job.working_processes()},
      {"armed", job.ended() ? Json(nullptr) : Json(!job.asleep())},
      {"recorded", RecordedJson(job)},
      {"recorded_ms", Ms(RecordedNs(job))},
      {"end_seen", job.ended() && !job.end_unseen()},
      {"complete_until_ms",
       Ms(job.end_unseen() ? job.complete_until_ns() : job.duration_ns())},
      {"batches_set_aside", job.batches_set_aside()},
      {"unreachable_ms", Ms(job.unreachable_ns())},
  };
  if (job.exit_status_known()) json["exit_status"] = job.exit_status();
  return json;
}

Json SiteJson(const v1::Site& site) {
  return {{"file", site.file()}, {"line", site.line()}, {"function", site.function()}};
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
      {"processes_without_memory", losses.processes_without_memory()},
      {"processes_threads_unseen", losses.processes_threads_unseen()},
      {"unrecorded_processes", losses.unrecorded_processes()},
      {"processes_with_seccomp_filter", losses.processes_with_seccomp_filter()},
      {"processes_unread", losses.processes_unread()},
      {"processes_end_unseen", losses.processes_end_unseen()},
      {"modules_unread", losses.modules_unread()},
  };
}

Json OverheadJson(const v1::Overhead& overhead) {
  return {{"self_ms", Ms(overhead.self_ns())},
          {"percent", overhead.percent()},
          {"relay_cpu_ms", Ms(overhead.relay_cpu_ns())},
          {"budget_percent", overhead.budget_percent()}};
}

}  // namespace lull
