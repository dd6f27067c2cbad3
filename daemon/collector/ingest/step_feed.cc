#include "daemon/collector/ingest/step_feed.h"

#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/wait_kind.h"
#include "events.pb.h"

namespace lull::collector {

using steps::Part;
using v1::StepSource;

namespace {

// What was called: a kernel by its function, a copy by its direction.
uint64_t KeyOf(const Series& series, const Event& event) {
  uint64_t what = 0;
  if (series.type == EventType::kLaunch) what = LaunchView{event}.function();
  if (series.type == EventType::kCopyAsync) what = CopyCallView{event}.kind();
  return what * 0x9E3779B97F4A7C15 + series.api;
}

bool IsForData(const Series& wait) {
  const aggregate::WaitKind kind = aggregate::WaitKindOf(wait);
  return kind == aggregate::WaitKind::kData || kind == aggregate::WaitKind::kWithinData;
}

}  // namespace

void StepFeed::Restore(const storage::StepRow& last) {
  told_until_ns_ = last.end_ns;
  next_number_ = last.number + 1;
}

void StepFeed::Add(const Event& event) {
  const Series& series = series_[event.series];
  switch (series.type) {
    case EventType::kStep:
      return AddMarked(event);
    case EventType::kThreadStart:  // perhaps with the number of one that is gone
      calls_.erase(event.tid);
      return;
    case EventType::kLaunch:
      // Calls repeat by what is recorded of all of them.
      if ((event.flags & aggregate::kFlagAlone) != 0) {
        return AddPart(Part::kRuntime, event);
      }
      [[fallthrough]];
    case EventType::kCopyAsync:
    case EventType::kSync:
      AddCall(event, KeyOf(series, event));
      return AddPart(Part::kRuntime, event);
    case EventType::kApiCall:
      return AddPart(Part::kRuntime, event);
    case EventType::kGpuKernel:
      return AddPart(gpu_.IsCommunication(aggregate::KernelOf(series))
                         ? Part::kCommunication
                         : Part::kKernel,
                     event);
    case EventType::kGpuGraph:
      return AddPart(Part::kKernel, event);
    case EventType::kGpuCopy:
      return AddPart(Part::kMemcpy, event);
    case EventType::kGpuMemset:
      return AddPart(Part::kMemset, event);
    case EventType::kTorchMemory:
      if (event.duration_ns <= aggregate::kSlowAllocationNs) return;
      [[fallthrough]];
    case EventType::kDeviceMemory:
    case EventType::kGcPause:
      return AddPart(Part::kHost, event);
    case EventType::kHostWait:
      if (tid_ != 0 && event.tid != tid_) return;  // its wait holds up nobody
      return AddPart(IsForData(series) ? Part::kData : Part::kHost, event);
    case EventType::kScope:
      if (!aggregate::IsLoading(series) || !ScopeView{event}.ended_here()) {
        return;
      }
      if (tid_ != 0 && event.tid != tid_) return;
      return AddPart(Part::kData, event);
    case EventType::kGpuTracing: {
      const TracingView told{event};
      if (told.state() != v1::TRACING_STATE_ACTIVE)
        return book_.Untrace(event.start_ns);
      // A trace of another profiler begins before the first operation.
      const bool imported = told.reason() == v1::TRACING_REASON_IMPORTED;
      return book_.Trace(imported ? 0 : event.start_ns);
    }
    case EventType::kGpuLost:
      return book_.Lost(event.start_ns, event.start_ns + event.duration_ns);
    default:
      return;
  }
}

// The program's own marks, of the kind that comes first.
void StepFeed::AddMarked(const Event& event) {
  const auto source = static_cast<StepSource>(StepView{event}.source());
  if (source == v1::STEP_SOURCE_NONE) return;  // the rest of a control step alone
  if (source_ == v1::STEP_SOURCE_NONE || source_ == v1::STEP_SOURCE_PERIOD) {
    source_ = source;
    calls_.clear();
  }
  if (source != source_) return;
  tid_ = event.tid;
  if (event.duration_ns == 0) {  // the first, of which only the end is known
    if (event.start_ns < told_until_ns_) return;
    storage::StepRow row;
    row.number = StepView{event}.number();
    row.source = source;
    row.start_ns = row.end_ns = event.start_ns;
    rows_.push_back(row);
    return;
  }
  const StepView step{event};
  AddStep(step.number(), event.start_ns, step.end_ns(), step.rested_ns());
}

void StepFeed::AddCall(const Event& event, uint64_t key) {
  bool marked = source_ != v1::STEP_SOURCE_NONE && source_ != v1::STEP_SOURCE_PERIOD;
  if (marked || (source_ == v1::STEP_SOURCE_PERIOD && event.tid != tid_)) return;
  auto known = calls_.find(event.tid);
  if (known == calls_.end()) {
    if (calls_.size() == kMostThreads) return;
    known = calls_.try_emplace(event.tid).first;
  }
  Calls& calls = known->second;
  if (event.start_ns < calls.last_ns) return;
  calls.last_ns = event.start_ns;
  auto found = calls.period.Add(key, event.start_ns);
  if (!found) {
    if (source_ == v1::STEP_SOURCE_NONE && calls.period.length() != 0) {
      source_ = v1::STEP_SOURCE_PERIOD;  // from here on stretches are kept
      tid_ = event.tid;
    }
    return;
  }
  AddStep(next_number_++, found->start_ns, found->end_ns, 0);
}

void StepFeed::AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns,
                       uint64_t rested_ns) {
  if (start_ns >= told_until_ns_) book_.AddStep(number, start_ns, end_ns, rested_ns);
}

void StepFeed::Advance(uint64_t as_of_ns, uint64_t gpu_ns) {
  book_.Advance(as_of_ns, gpu_ns, &done_);
  for (const steps::Step& step : done_) {
    storage::StepRow row;
    row.number = step.number;
    row.source = source_;
    row.start_ns = step.start_ns;
    row.end_ns = step.end_ns;
    row.traced = step.traced;
    row.rested_ns = step.rested_ns;
    row.part_ns = step.part_ns;
    rows_.push_back(row);
  }
  done_.clear();
}

}  // namespace lull::collector
