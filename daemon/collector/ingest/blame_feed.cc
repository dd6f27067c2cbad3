#include "daemon/collector/ingest/blame_feed.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/stretch.h"
#include "daemon/aggregate/wait_kind.h"
#include "daemon/collector/ingest/told.h"

namespace lull::collector {

using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// What explains a gap began at most this long before it, in practice. Only a collector
// that comes up in the middle of a job depends on it.
constexpr uint64_t kReplayNs = 60 * kSecond;
// A change of tracing is committed a moment after the time that it tells.
constexpr uint64_t kCommitSlackNs = kSecond;
// Once tracing is off, the records that are still to come do so within this.
constexpr uint64_t kLastRecordsNs = 10 * kSecond;

// No clock of a real job leaves this range, and no peer can make us cut centuries of
// idle time into seconds.
constexpr uint64_t kPlausibleBeforeNs = 86'400 * kSecond;
constexpr uint64_t kPlausibleAfterNs = 100 * 86'400 * kSecond;

// A longer stretch than this comes from a clock that is broken, and is not cut up.
constexpr uint64_t kLongestNs = 10 * 86'400 * kSecond;

// A sample is sent within a moment of its time, and told to nobody else than the gap.
constexpr uint64_t kLateSamplesNs = 10 * kSecond;

// A process holds so many events that cannot be judged yet; about 50 bytes each.
constexpr size_t kMaxPending = 600'000;

blame::Options EngineOptions() {
  blame::Options options;
  options.patience_ns = 4 * kSecond;
  options.coverage_ns = aggregate::kBucketNs;
  options.max_pending = kMaxPending;
  return options;
}

blame::HostKind KindOfWait(const Series& wait) {
  switch (aggregate::WaitKindOf(wait)) {
    case aggregate::WaitKind::kData:
    case aggregate::WaitKind::kWithinData:
      return blame::HostKind::kDataWait;
    case aggregate::WaitKind::kGil:
      return blame::HostKind::kGilWait;
    case aggregate::WaitKind::kLock:
      return blame::HostKind::kHandover;
    default:
      return blame::HostKind::kHostWait;
  }
}

blame::OperationKind KindOfOperation(EventType type) {
  switch (type) {
    case EventType::kGpuCopy:
      return blame::OperationKind::kCopy;
    case EventType::kGpuMemset:
      return blame::OperationKind::kMemset;
    case EventType::kGpuGraph:
      return blame::OperationKind::kGraph;
    default:
      return blame::OperationKind::kKernel;
  }
}

void TakeCulprit(const Series& from, Series& to) {
  to.api = from.api;
  to.python_stack = from.python_stack;
  // Of a scope those are names, and no place.
  to.native_stack = from.type == EventType::kScope ? 0 : from.native_stack;
  to.line_site = from.line_site;
  to.function_site = from.function_site;
}

}  // namespace

BlameFeed::BlameFeed(SeriesTable& series, GpuTables& gpu, uint64_t job_start_ns)
    : series_(series),
      gpu_(gpu),
      job_start_ns_(job_start_ns),
      shift_ns_(job_start_ns % aggregate::kBucketNs),
      engine_(EngineOptions(), *this),
      regions_(series) {}

uint64_t BlameFeed::ToEngine(uint64_t time_ns) const {
  return time_ns > shift_ns_ ? time_ns - shift_ns_ : 0;
}

uint64_t BlameFeed::ReplayFrom(uint64_t judged_ns) {
  return judged_ns > kReplayNs ? judged_ns - kReplayNs : 0;
}

void BlameFeed::Restore(uint64_t judged_ns, bool traced) {
  judged_ns_ = restored_ns_ = judged_ns;
  regions_.Restore(judged_ns);
  traced_ = flowing_ = traced;
  traced_change_ns_ = ReplayFrom(judged_ns);
  if (traced) engine_.Trace(ToEngine(traced_change_ns_));
  samples_.Replay(true);
}

void BlameFeed::Restored() { samples_.Replay(false); }

bool BlameFeed::IsPlausible(const Event& event) const {
  return event.start_ns + kPlausibleBeforeNs >= job_start_ns_ &&
         event.start_ns <= job_start_ns_ + kPlausibleAfterNs &&
         event.duration_ns <= kPlausibleAfterNs;
}

void BlameFeed::Add(const Event& event) {
  if (finished_ || !IsPlausible(event)) return;
  const Series& series = series_[event.series];
  const uint64_t start = ToEngine(event.start_ns);
  const uint64_t end = start + event.duration_ns;
  switch (series.type) {
    case EventType::kLaunch:
    case EventType::kCopyAsync:
      return AddHost(blame::HostKind::kLaunch, event);
    case EventType::kSync:
      return AddHost(blame::HostKind::kSync, event);
    case EventType::kTorchMemory:
      if (event.duration_ns <= aggregate::kSlowAllocationNs) return;
      [[fallthrough]];
    case EventType::kDeviceMemory:
      return AddHost(blame::HostKind::kAllocator, event);
    case EventType::kGcPause:
      return AddHost(blame::HostKind::kGc, event);
    case EventType::kHostWait:
      return AddHost(KindOfWait(series), event);
    case EventType::kScope:
      regions_.AddScope(event);
      if (aggregate::IsLoading(series) && aggregate::ScopeView{event}.ended_here()) {
        AddHost(blame::HostKind::kDataScope, event);
      }
      return;
    case EventType::kRunDelay: {
      const aggregate::RunDelayView told{event};
      // Else it only woke up late from waits of its own.
      if (told.preemptions() == 0) return;
      return engine_.Add(blame::RunDelay{start, end, event.tid, told.delay_ns()});
    }
    case EventType::kHostSample:
      samples_.AddSample(event);
      return TellSamples();
    case EventType::kGpuKernel:
    case EventType::kGpuCopy:
    case EventType::kGpuMemset:
    case EventType::kGpuGraph:
      return AddOperation(series, event);
    case EventType::kApiCall: {
      const aggregate::ApiCallView call{event};
      return engine_.Add(
          blame::ApiCall{start, end, call.caller(), call.correlation(), event.series});
    }
    case EventType::kGpuStreamWait: {
      const storage::GpuStreamRow& stream = gpu_.Stream(series.gpu_stream);
      return engine_.Add(
          blame::StreamWait{start, stream.context, stream.stream,
                            aggregate::StreamWaitView{event}.correlation()});
    }
    case EventType::kGpuTracing:
      return AddTracing(event);
    case EventType::kGpuLost:
      return engine_.Lost(start, end);
    case EventType::kGpuMark:
      next_mark_ns_ = std::max(next_mark_ns_, event.start_ns);
      return;
    case EventType::kIdle:
    case EventType::kCoverage:
      return AddTold(series, event);
    default:
      return;
  }
}

void BlameFeed::AddHost(blame::HostKind kind, const Event& event) {
  uint64_t start = ToEngine(event.start_ns);
  engine_.Add(blame::HostEvent{start, start + event.duration_ns, event.tid,
                               event.series, kind});
}

void BlameFeed::AddOperation(const Series& series, const Event& event) {
  const storage::GpuStreamRow& stream = gpu_.Stream(series.gpu_stream);
  blame::Operation operation;
  operation.start_ns = ToEngine(event.start_ns);
  operation.end_ns = operation.start_ns + event.duration_ns;
  operation.correlation = aggregate::KernelView{event}.correlation();
  operation.device = stream.device;
  operation.context = stream.context;
  operation.stream = stream.stream;
  operation.series = event.series;
  operation.kind = KindOfOperation(series.type);
  engine_.Add(operation);
  told_.try_emplace(stream.device, judged_ns_);
}

void BlameFeed::AddTracing(const Event& event) {
  const TracingView told{event};
  const bool on = told.state() == v1::TRACING_STATE_ACTIVE;
  uint64_t at = ToEngine(event.start_ns);
  // A program that ends has nothing left for the device to do: what comes after the
  // last operation is no gap, and tracing that is never ended ends with it (Finish).
  bool at_exit = !on && told.reason() == v1::TRACING_REASON_PROCESS_END;
  if (on) {
    engine_.Trace(at);
  } else if (!at_exit) {
    engine_.Untrace(at);
  }
  if (event.start_ns < traced_change_ns_) return;
  traced_change_ns_ = event.start_ns;
  traced_ = on;
  flowing_ = on || told.state() == v1::TRACING_STATE_WARM_UP;
}

// Up to when all operations are known. Marks come with records; without tracing there
// are neither, and nothing to wait for.
uint64_t BlameFeed::GpuMark(uint64_t as_of_ns) const {
  bool complete =
      mark_ns_ >= traced_change_ns_ || as_of_ns > traced_change_ns_ + kLastRecordsNs;
  if (flowing_ || !complete) return mark_ns_;
  return std::max(mark_ns_, as_of_ns - std::min(as_of_ns, kCommitSlackNs));
}

// What an earlier feed has told. Coverage says up to where all of the device was; the
// idle stretch at its end may reach beyond it, and was told as a whole.
void BlameFeed::AddTold(const Series& series, const Event& event) {
  uint64_t end = event.start_ns + event.duration_ns;
  if (series.type == EventType::kIdle) {
    uint64_t& idle = restored_idle_[aggregate::DeviceOf(series)];
    idle = std::max(idle, end);
    return AddToGaps(event);
  }
  uint64_t& restored = restored_[aggregate::DeviceOf(series)];
  restored = std::max(restored, end);
  uint64_t& told = told_[aggregate::DeviceOf(series)];
  told = std::max(told, end);
}

void BlameFeed::Advance(uint64_t as_of_ns) {
  if (finished_) return;
  gpu_ns_ = GpuMark(as_of_ns);
  // A hook stamps the end of its call, then takes stacks, perhaps loses its processor,
  // and commits.
  const uint64_t host_ns = as_of_ns - std::min(as_of_ns, kCommitSlackNs);
  engine_.Advance(ToEngine(host_ns), ToEngine(gpu_ns_));
  // What a mark speaks of was committed before it, but perhaps in a ring that the relay
  // had read already: it is in the next batch at the latest.
  mark_ns_ = next_mark_ns_;
  UpdateJudged(as_of_ns);
  samples_.Forget(judged_ns_ - std::min(judged_ns_, kLateSamplesNs));
  TellRegions();
}

void BlameFeed::Finish() {
  if (finished_) return;
  finished_ = true;
  engine_.Finish();
  judged_ns_ = std::numeric_limits<int64_t>::max();
  TellRegions();
}

void BlameFeed::TellRegions() {
  regions_.Advance(judged_ns_, [this](uint32_t series, uint64_t start_ns,
                                      uint64_t total_ns, uint64_t amount_ns) {
    summed_.push_back({series, start_ns, total_ns, amount_ns});
  });
}

void BlameFeed::UpdateJudged(uint64_t as_of_ns) {
  uint64_t least = traced_ ? traced_change_ns_ : as_of_ns;
  bool first = true;
  for (const auto& [device, until] : told_) {
    least = first ? until : std::min(least, until);
    first = false;
  }
  // Tracing is off and all of it has been told: nothing will be until it is on again.
  if (!traced_ && (first || least >= traced_change_ns_)) {
    least = as_of_ns > kCommitSlackNs ? as_of_ns - kCommitSlackNs : 0;
  }
  judged_ns_ = std::max(judged_ns_, std::min(least, as_of_ns));
}

uint64_t BlameFeed::RestoredUntil(uint32_t device) const {
  auto it = restored_.find(device);
  return it == restored_.end() ? restored_ns_ : std::max(it->second, restored_ns_);
}

void BlameFeed::Tell(EventType type, Event event, uint32_t device) {
  auto tell = [this, type](const Event& part) {
    events_.push_back(part);
    if (type == EventType::kIdle) AddToGaps(part);
  };
  if (event.duration_ns > kLongestNs) return tell(event);
  uint64_t told = RestoredUntil(device);
  if (auto it = restored_idle_.find(device);
      type == EventType::kIdle && it != restored_idle_.end()) {
    told = std::max(told, it->second);
  }
  if (!aggregate::ClipStretch(type, told, std::numeric_limits<uint64_t>::max(),
                              event)) {
    return;
  }
  aggregate::SplitStretch(type, event, job_start_ns_, tell);
}

// Of the causes that are the code itself, or what it was robbed of, and of data: where
// the thread was is in the samples.
void BlameFeed::AddToGaps(const Event& idle) {
  switch (static_cast<blame::Cause>(aggregate::CauseOf(series_[idle.series]))) {
    case blame::Cause::kHostCode:
    case blame::Cause::kLaunchBound:
    case blame::Cause::kRunQueue:
    case blame::Cause::kDataWait:
      samples_.AddIdle(idle);
      return TellSamples();
    default:
      return;
  }
}

void BlameFeed::TellSamples() {
  for (const GapSamples::Found& found : samples_.Take()) {
    Event event;
    event.start_ns = found.sample.time_ns;
    aggregate::SampleView::Set(event, found.sample.weight_ns, found.sample.kind);
    event.tid = found.tid;
    event.series = SampleSeries(found);
    events_.push_back(event);
  }
}

uint32_t BlameFeed::SampleSeries(const GapSamples::Found& found) {
  auto [it, fresh] =
      known_.try_emplace(Key{static_cast<uint32_t>(EventType::kGapSample), 0,
                             found.idle_series, found.sample.series, 0});
  if (!fresh) return it->second;
  const Series& sample = series_[found.sample.series];
  Series series;
  series.type = EventType::kGapSample;
  series.variant = sample.variant;
  series.shape = found.idle_series;
  if (!series_.full()) {
    series.python_stack = sample.python_stack;
    series.line_site = sample.line_site;
    series.function_site = sample.function_site;
  }
  return it->second = series_.Intern(series);
}

void BlameFeed::OnIdle(const blame::Idle& idle) {
  Event event;
  event.start_ns = FromEngine(idle.start_ns);
  event.duration_ns = idle.end_ns - idle.start_ns;
  event.tid = idle.tid;
  event.series = IdleSeries(idle);
  regions_.AddIdle(idle.device, event.start_ns, event.start_ns + event.duration_ns,
                   static_cast<size_t>(idle.cause));
  Tell(EventType::kIdle, event, idle.device);
}

void BlameFeed::OnCoverage(const blame::Coverage& coverage) {
  Series series;
  series.type = EventType::kCoverage;
  series.shape = coverage.device;
  Event event;
  event.start_ns = FromEngine(coverage.start_ns);
  event.duration_ns = coverage.end_ns - coverage.start_ns;
  regions_.AddTraced(coverage.device, event.start_ns,
                     event.start_ns + event.duration_ns);
  aggregate::CoverageView::Set(event, coverage.busy_ns, coverage.kernel_ns);
  event.series = series_.Intern(series);
  Tell(EventType::kCoverage, event, coverage.device);
  uint64_t& told = told_[coverage.device];
  told = std::max(told, FromEngine(coverage.end_ns));
}

void BlameFeed::OnSync(const blame::SyncCost& cost) {
  uint64_t end = FromEngine(cost.sync.end_ns);
  if (end <= restored_ns_) return;
  auto [it, fresh] = known_.try_emplace(
      Key{static_cast<uint32_t>(EventType::kSyncCost), 0, cost.sync.series, 0, 0});
  if (fresh) {
    Series series;
    series.type = EventType::kSyncCost;
    TakeCulprit(series_[cost.sync.series], series);
    it->second = series_.Intern(series);
  }
  Event event;
  event.start_ns = FromEngine(cost.sync.start_ns);
  event.duration_ns = cost.sync.end_ns - cost.sync.start_ns;
  aggregate::SyncCostView::Set(event, cost.needed_ns);
  event.tid = cost.sync.tid;
  event.series = it->second;
  events_.push_back(event);
}

void BlameFeed::OnSubmission(const blame::Submission& submission) {
  const blame::Operation& operation = submission.operation;
  uint64_t start = FromEngine(operation.start_ns);
  if (start < RestoredUntil(operation.device)) return;
  submitted_.push_back(
      {SubmissionSeries(submission), start, operation.end_ns - operation.start_ns});
}

uint32_t BlameFeed::IdleSeries(const blame::Idle& idle) {
  auto [it, fresh] = known_.try_emplace(Key{
      static_cast<uint32_t>(EventType::kIdle) << 8 | static_cast<uint32_t>(idle.cause),
      idle.device, idle.culprit, idle.before, idle.after});
  if (!fresh) return it->second;
  Series series;
  series.type = EventType::kIdle;
  series.variant = static_cast<uint8_t>(idle.cause);
  series.shape = idle.device;
  if (!series_.full()) {
    TakeCulprit(series_[idle.culprit != 0 ? idle.culprit : idle.after], series);
    if (idle.culprit == 0) series.api = 0;
    series.before_line = series_[idle.before].line_site;
    series.before_function = series_[idle.before].function_site;
    series.after_line = series_[idle.after].line_site;
    series.after_function = series_[idle.after].function_site;
  }
  return it->second = series_.Intern(series);
}

uint32_t BlameFeed::SubmissionSeries(const blame::Submission& submission) {
  const blame::Operation& operation = submission.operation;
  auto [it, fresh] =
      known_.try_emplace(Key{static_cast<uint32_t>(EventType::kSubmission), 0,
                             operation.series, submission.launch, submission.call});
  if (!fresh) return it->second;
  const Series& ran = series_[operation.series];
  Series series;
  series.type = EventType::kSubmission;
  series.variant = static_cast<uint8_t>(operation.kind);
  if (operation.kind == blame::OperationKind::kKernel) {
    series.shape = gpu_.KernelName(aggregate::KernelOf(ran));
  }
  // By name and line; neither shape nor stream, of which there may be very many.
  if (!series_.full()) {
    TakeCulprit(series_[submission.launch != 0 ? submission.launch : submission.call],
                series);
  }
  return it->second = series_.Intern(series);
}

}  // namespace lull::collector
