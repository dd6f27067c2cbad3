#include "daemon/query/totals.h"

#include <algorithm>

#include "daemon/aggregate/wait_kind.h"
#include "daemon/base/status.h"
#include "daemon/query/gather.h"
#include "daemon/query/last_step.h"

namespace lull::query {

// How long a process has been seen: until its end, or until its last sign of life.
uint64_t EndOf(const storage::JobRow& job, const storage::ProcessRow& process) {
  return process.end_ns != 0 ? process.end_ns
                             : std::max(process.counters.as_of_ns(), job.end.end_ns());
}

namespace {

using storage::ProcessRow;

uint64_t DurationOf(const storage::JobRow& job, const ProcessRow& process) {
  uint64_t end = EndOf(job, process);
  return end > process.info.start_ns() && process.info.start_ns() > 0
             ? end - process.info.start_ns()
             : 0;
}

// How much of `range` it recorded: what the times that it reports are a part of.
uint64_t RecordedOf(const storage::JobRow& job, const ProcessSums& sums,
                    TimeRange range) {
  const ProcessRow& process = sums.process;
  if (process.info.start_ns() == 0) return 0;
  uint64_t begin = process.info.start_ns();
  if (range.since != 0) begin = std::max(begin, job.info.start_ns() + range.since);
  uint64_t end = EndOf(job, process);
  if (range.until != aggregate::kForever) {
    end = std::min(end, job.info.start_ns() + range.until);
  }
  return begin < end ? sums.recorded.Within(begin, end) : 0;
}

// For how long hooks rested in control steps, in the range of the sums.
uint64_t RestedOf(const ProcessSums& sums) {
  uint64_t rested_ns = 0;
  sums.ForEach([&](const aggregate::Series& series, const aggregate::Cell& cell) {
    if (series.type == aggregate::EventType::kStep) rested_ns += cell.amount;
  });
  return rested_ns;
}

// The last that was heard of a job. While it sleeps there are no events, but signs of
// life.
uint64_t EndOfJob(const storage::JobRow& job, const Recorded& recorded,
                  const std::vector<ProcessRow>& processes) {
  if (job.ended) return job.end.end_ns();
  uint64_t end = job.last_event_ns;
  for (const ProcessRow& process : processes) {
    if (!recorded.always()) end = std::max(end, process.counters.as_of_ns());
  }
  return end;
}

uint64_t CommittedOf(const storage::RingRow& ring) {
  return std::max(ring.counters.committed(), ring.end_position);
}

// Positions that never came and that nobody declared lost are lost all the same: those
// below the mark, and when the process is over all that were not stored.
uint64_t LostByRelay(const storage::RingRow& ring, bool over) {
  if (over) return CommittedOf(ring) - std::min(ring.stored, CommittedOf(ring));
  return std::max(ring.counters.lost_relay(), ring.skipped);
}

// For a job whose end nobody saw: what happened before is here or counted as lost. Each
// process that did not end by itself is complete until its last counters.
uint64_t CompleteUntil(const std::vector<ProcessRow>& processes, uint64_t end) {
  for (const ProcessRow& process : processes) {
    if (process.end_ns != 0) continue;
    end = std::min(end, std::max(process.counters.as_of_ns(), process.info.start_ns()));
  }
  return end;
}

}  // namespace

bool Fits(const ProcessRow& process, const v1::ReportRequest& request) {
  return (!request.has_pid() || process.info.pid() == request.pid()) &&
         (!request.has_rank() || process.info.rank() == request.rank());
}

bool Works(const ProcessRow& process) {
  return process.counters.gpu_calls() > 0 || process.counters.torch_allocations() > 0;
}

std::vector<ProcessRow> SelectProcesses(const std::vector<ProcessRow>& all,
                                        const v1::ReportRequest& request) {
  std::vector<ProcessRow> chosen;
  for (const ProcessRow& process : all) {
    if (Fits(process, request)) chosen.push_back(process);
  }
  if (request.has_pid()) return chosen;
  // Workers of a process record nothing, whatever the others do.
  std::erase_if(
      chosen, [](const ProcessRow& process) { return process.info.worker_of() != 0; });
  if (std::none_of(chosen.begin(), chosen.end(), Works)) return chosen;
  chosen.erase(
      std::remove_if(chosen.begin(), chosen.end(),
                     [](const ProcessRow& process) { return !Works(process); }),
      chosen.end());
  return chosen;
}

namespace {

// Of a job that runs, and of which a relay reports. What cannot be read of it is not
// worth that nothing is told of the job.
void FillLastStep(storage::StoreReader& reader, const Recorded& recorded,
                  const std::vector<ProcessRow>& processes, uint64_t at_ns,
                  v1::Job* out) {
  std::vector<ProcessRow> live;
  for (const ProcessRow& process : processes) {
    if (process.end_ns == 0 && process.info.worker_of() == 0) live.push_back(process);
  }
  const auto last = FindLastStep(reader, recorded, live, at_ns);
  if (!last.ok() || !*last) return;
  out->set_since_step_ns((*last)->since_ns);
  out->set_step_ns((*last)->step_ns);
}

}  // namespace

bool AreStepsSampled(const storage::JobRow& job,
                     const std::vector<ProcessRow>& processes) {
  return job.info.settings().sample_steps() ||
         std::any_of(processes.begin(), processes.end(), [](const ProcessRow& process) {
           return process.counters.thinning() >= v1::THINNING_STEPS;
         });
}

absl::Status FillJob(RunParts& run_parts, const storage::JobRow& job, v1::Job* out) {
  storage::StoreReader& reader = run_parts.reader();
  out->set_id(job.info.id());
  out->set_name(job.info.name());
  out->set_command(job.info.command());
  out->set_host(job.info.host());
  out->set_start_realtime_ns(job.info.start_realtime_ns());
  out->set_ended(job.ended);
  out->set_exit_status_known(job.end.known());
  out->set_exit_status(job.end.exit_status());
  out->set_attached(job.info.attached());
  if (job.info.has_imported()) *out->mutable_imported() = job.info.imported();
  if (job.info.has_settings()) *out->mutable_settings() = job.info.settings();
  *out->mutable_tags() = job.marks.tags();
  out->set_pinned(job.marks.pinned());
  out->set_batches_set_aside(job.batches_set_aside);
  out->set_unreachable_ns(job.end.unreachable_ns());
  LULL_ASSIGN_OR_RETURN(auto processes,
                        reader.catalogue().All<storage::ProcessRow>(job.id));
  LULL_ASSIGN_OR_RETURN(Recorded recorded, Recorded::Load(reader, job));
  out->set_steps_sampled(AreStepsSampled(job, processes));
  uint64_t end = EndOfJob(job, recorded, processes);
  out->set_duration_ns(end > job.info.start_ns() ? end - job.info.start_ns() : 0);
  recorded.Fill(job, end, out);
  if (job.end.cut_off() || (!job.ended && !run_parts.HasRelayOf(job))) {
    out->set_end_unseen(true);
    uint64_t until = CompleteUntil(processes, end);
    out->set_complete_until_ns(until > job.info.start_ns() ? until - job.info.start_ns()
                                                           : 0);
  }
  if (!job.ended && !out->asleep() && !out->end_unseen()) {
    FillLastStep(reader, recorded, processes, end, out);
  }
  uint64_t events = 0;
  for (const ProcessRow& process : processes) {
    LULL_ASSIGN_OR_RETURN(auto rings,
                          reader.catalogue().All<storage::RingRow>(process.id));
    for (const storage::RingRow& ring : rings) {
      if (ring.ring != storage::kDerivedRing) events += ring.stored;
    }
  }
  out->set_events(events);
  LULL_ASSIGN_OR_RETURN(auto parts, run_parts.Of(job));
  for (const storage::JobRow& part : parts) {
    if (parts.size() == 1) break;
    v1::Job::Part* told = out->add_parts();
    told->set_id(part.info.id());
    told->set_host(part.info.host());
  }
  out->set_processes(static_cast<uint32_t>(std::count_if(
      processes.begin(), processes.end(),
      [](const ProcessRow& process) { return process.info.worker_of() == 0; })));
  out->set_working_processes(
      static_cast<uint32_t>(std::count_if(processes.begin(), processes.end(), Works)));
  return absl::OkStatus();
}

absl::Status FillLosses(storage::StoreReader& reader, const storage::JobRow& job,
                        const v1::ReportRequest& request, v1::Losses* out) {
  out->set_unrecorded_processes(job.end.unrecorded_processes());
  LULL_ASSIGN_OR_RETURN(auto processes,
                        reader.catalogue().All<storage::ProcessRow>(job.id));
  for (const ProcessRow& process : processes) {
    if (!Fits(process, request)) continue;
    LULL_ASSIGN_OR_RETURN(auto rings,
                          reader.catalogue().All<storage::RingRow>(process.id));
    const bool over = job.ended || process.end_ns != 0;
    for (const storage::RingRow& ring : rings) {
      if (ring.ring == storage::kDerivedRing) continue;
      out->set_events_committed(out->events_committed() + CommittedOf(ring));
      out->set_events_stored(out->events_stored() + ring.stored);
      out->set_lost_relay(out->lost_relay() + LostByRelay(ring, over));
      Gather(ring.counters, out);
    }
    // If the job was cut off, its own end says so; an attach ends before its
    // targets.
    if (job.ended && process.end_ns == 0 && !job.end.cut_off() &&
        !job.info.attached() && process.info.worker_of() == 0) {
      out->set_processes_end_unseen(out->processes_end_unseen() + 1);
    }
    Gather(process.counters, out);
  }
  out->set_events_lost(out->lost_ring_full() + out->lost_no_ring() + out->lost_relay());
  return absl::OkStatus();
}

void FillOverhead(const storage::JobRow& job, const std::vector<ProcessSums>& processes,
                  v1::Overhead* out) {
  out->set_relay_cpu_ns(job.end.relay_cpu_ns());
  out->set_budget_percent(job.info.overhead_budget_percent());
  for (const ProcessSums& sums : processes) {
    uint64_t self = sums.process.counters.gpu_self_ns();
    for (const storage::RingRow& ring : sums.rings) self += ring.counters.self_ns();
    out->set_self_ns(out->self_ns() + self);
    uint64_t wall = RecordedOf(job, sums, {});
    if (wall == 0) continue;
    double percent = 100.0 * static_cast<double>(self) / static_cast<double>(wall);
    out->set_percent(std::max(out->percent(), percent));
  }
}

void FillProcess(const storage::JobRow& job, const ProcessSums& sums,
                 v1::ProcessRow* out) {
  const ProcessRow& process = sums.process;
  out->set_pid(process.info.pid());
  out->set_parent_pid(process.info.parent_pid());
  out->set_rank(process.info.rank());
  out->set_command(process.info.command());
  out->set_gpu(process.counters.gpu_calls() > 0);
  out->set_torch(process.counters.torch_allocations() > 0);
  out->set_duration_ns(DurationOf(job, process));
  const uint64_t rested_ns = RestedOf(sums);
  if (!sums.recorded.always() || !sums.range.all() || rested_ns != 0) {
    const uint64_t recorded_ns = RecordedOf(job, sums, sums.range);
    out->set_recorded_ns(recorded_ns - std::min(recorded_ns, rested_ns));
    out->set_rested_ns(std::min(recorded_ns, rested_ns));
  }
  out->set_native_stacks(process.counters.native_stacks());
  out->set_gc_hook(process.counters.gc_hook());
  out->set_corrupt(process.counters.corrupt());
  out->set_cupti_state(process.counters.cupti_state());
  out->set_cupti_version(process.counters.cupti_version());
  out->set_cupti_result(process.counters.cupti_result());
  out->set_step_hook(process.counters.step_hook());
  out->set_scope_hook(process.counters.scope_hook());
  uint64_t events = 0, launches = 0, blocked = 0, data = 0, gc = 0;
  uint64_t traced = 0, idle = 0;
  Cell delays;
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type == EventType::kCoverage) traced += cell.total_ns;
    if (series.type == EventType::kIdle) idle += cell.total_ns;
    if (series.type == EventType::kRunDelay) delays.Append(cell);
    if (series.type >= EventType::kFirstDerived) return;
    if (series.type == EventType::kHostSample) return;  // nothing that it did
    events += cell.count;
    if (series.type == EventType::kLaunch) launches += cell.count;
    if (series.type == EventType::kSync) blocked += cell.total_ns;
    if (series.type == EventType::kGcPause) gc += cell.total_ns;
    if (aggregate::IsDataWait(series)) data += cell.total_ns;
  });
  out->set_events(events);
  out->set_launches(launches);
  out->set_blocked_ns(blocked);
  out->set_data_wait_ns(data);
  out->set_gc_ns(gc);
  out->set_traced_ns(traced);
  out->set_busy_ns(traced - std::min(idle, traced));
  if (process.counters.has_host_use()) {
    *out->mutable_host_use() = process.counters.host_use();
  }
  out->set_run_delay_ns(delays.total_ns);
  out->set_migrations(delays.amount);
  out->set_preemptions(delays.amount2);
}

}  // namespace lull::query
