#include "daemon/collector/ingest/blame_feed.h"

#include <algorithm>
#include <limits>

#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/stretch.h"
#include "daemon/aggregate/wait_kind.h"
#include "events.pb.h"

namespace lull::collector {

namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// What explains a gap began at most this long before it, in practice. Only a collector
// that comes up in the middle of a job depends on it.
constexpr uint64_t kReplayNs = 60 * kSecond;

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

}  // namespace

BlameFeed::BlameFeed(SeriesTable& series, GpuTables& gpu, uint64_t job_start_ns)
    : series_(series),
      gpu_(gpu),
      job_start_ns_(job_start_ns),
      shift_ns_(job_start_ns % aggregate::kBucketNs),
      engine_(EngineOptions(), *this),
      derived_(series, gpu),
      regions_(series),
      autograd_(series) {}

uint64_t BlameFeed::ToEngine(uint64_t time_ns) const {
  return time_ns > shift_ns_ ? time_ns - shift_ns_ : 0;
}

uint64_t BlameFeed::ReplayFrom(uint64_t judged_ns) {
  return judged_ns > kReplayNs ? judged_ns - kReplayNs : 0;
}

void BlameFeed::Restore(uint64_t judged_ns, bool traced) {
  judged_.Restore(judged_ns);
  regions_.Restore(judged_ns);
  thread_regions_.Restore(judged_ns);
  autograd_.Restore(judged_ns);
  marks_.Change(ReplayFrom(judged_ns), traced, false);
  if (traced) engine_.Trace(ToEngine(ReplayFrom(judged_ns)));
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
  autograd_.Add(event);
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
      return AddScope(series, event);
    case EventType::kRunDelay: {
      const RunDelayView told{event};
      // Else it only woke up late from waits of its own.
      if (told.preemptions() == 0) return;
      return engine_.Add(
          blame::RunDelay{start, end, ThreadId{event.tid}, told.delay_ns()});
    }
    case EventType::kHostSample:
      if (aggregate::RoleOf(series) == aggregate::SampleRole::kAutograd) {
        thread_regions_.AddOfTheEngine(ThreadId{event.tid});
      }
      thread_regions_.AddSample(event);
      samples_.AddSample(event);
      return TellSamples();
    case EventType::kGapSample:  // told by an earlier feed
    case EventType::kEngineSample:
      return thread_regions_.AddSample(event);
    case EventType::kGpuKernel:
    case EventType::kGpuCopy:
    case EventType::kGpuMemset:
    case EventType::kGpuGraph:
      return AddOperation(series, event);
    case EventType::kApiCall: {
      const ApiCallView call{event};
      return engine_.Add(
          blame::ApiCall{start, end, call.caller(), call.correlation(), event.series});
    }
    case EventType::kGpuStreamWait: {
      const storage::GpuStreamRow& stream = gpu_.Stream(series.gpu_stream);
      return engine_.Add(blame::StreamWait{start, stream.context, stream.stream,
                                           StreamWaitView{event}.correlation()});
    }
    case EventType::kGpuTracing:
      return AddTracing(event);
    case EventType::kGpuLost:
      return engine_.Lost(start, end);
    case EventType::kGpuMark:
      return marks_.Mark(event.start_ns);
    case EventType::kIdle:
    case EventType::kCoverage:
      return AddTold(series, event);
    default:
      return;
  }
}

void BlameFeed::AddScope(const Series& series, const Event& event) {
  regions_.AddScope(event);
  if (!ScopeView{event}.ended_here()) return;
  if (series.native_stack != 0) {
    thread_regions_.AddScope(ThreadId{event.tid}, event.start_ns,
                             event.start_ns + event.duration_ns, series.native_stack);
  }
  if (aggregate::IsLoading(series)) AddHost(blame::HostKind::kDataScope, event);
}

void BlameFeed::AddHost(blame::HostKind kind, const Event& event) {
  uint64_t start = ToEngine(event.start_ns);
  engine_.Add(blame::HostEvent{start, start + event.duration_ns, ThreadId{event.tid},
                               event.series, kind});
}

void BlameFeed::AddOperation(const Series& series, const Event& event) {
  const storage::GpuStreamRow& stream = gpu_.Stream(series.gpu_stream);
  blame::Operation operation;
  operation.start_ns = ToEngine(event.start_ns);
  operation.end_ns = operation.start_ns + event.duration_ns;
  operation.correlation = OperationView{event}.correlation();
  operation.device = stream.device;
  operation.context = stream.context;
  operation.stream = stream.stream;
  operation.series = event.series;
  operation.kind = KindOfOperation(series.type);
  engine_.Add(operation);
  judged_.Await(stream.device);
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
  marks_.Change(event.start_ns, on, told.state() == v1::TRACING_STATE_WARM_UP);
}

// A stretch that an earlier feed told.
void BlameFeed::AddTold(const Series& series, const Event& event) {
  judged_.AddRestored(series.type, aggregate::DeviceOf(series),
                      event.start_ns + event.duration_ns);
  if (series.type != EventType::kIdle) return;
  thread_regions_.AddIdle(event);
  AddToGaps(event);
}

void BlameFeed::Advance(uint64_t as_of_ns) {
  if (finished_) return;
  gpu_ns_ = marks_.CompleteUntil(as_of_ns);
  // A hook stamps the end of its call, then takes stacks, perhaps loses its processor,
  // and commits.
  const uint64_t host_ns = as_of_ns - std::min(as_of_ns, kCommitSlackNs);
  engine_.Advance(ToEngine(host_ns), ToEngine(gpu_ns_));
  marks_.EndBatch();
  judged_.Advance(marks_, as_of_ns);
  samples_.Forget(judged_ns() - std::min(judged_ns(), kLateSamplesNs));
  TellRegions();
}

void BlameFeed::Finish() {
  if (finished_) return;
  finished_ = true;
  engine_.Finish();
  judged_.Finish();
  TellRegions();
}

void BlameFeed::TellRegions() {
  regions_.Advance(judged_ns(), [this](uint32_t series, uint64_t start_ns,
                                       uint64_t total_ns, uint64_t amount_ns) {
    Summed told{series, start_ns, {}};
    told.sum.Add(total_ns, amount_ns, 0);
    summed_.push_back(told);
  });
  for (const Event& sample : autograd_.Advance(judged_ns())) {
    thread_regions_.AddSample(sample);
    events_.push_back(sample);
  }
  for (const ThreadRegions::Found& found : thread_regions_.Advance(judged_ns())) {
    if (const uint32_t series = derived_.OfRegion(found); series != 0) {
      summed_.push_back({series, found.time_ns, found.sum});
    }
  }
}

void BlameFeed::Tell(EventType type, Event event, DeviceId device) {
  auto tell = [this, type](const Event& part) {
    events_.push_back(part);
    if (type != EventType::kIdle) return;
    thread_regions_.AddIdle(part);
    AddToGaps(part);
  };
  if (event.duration_ns > kLongestNs) return tell(event);
  if (!aggregate::ClipStretch(type, judged_.RestoredUntil(type, device),
                              std::numeric_limits<uint64_t>::max(), event)) {
    return;
  }
  aggregate::SplitStretch(type, event, job_start_ns_, tell);
}

// For data, and for causes that are the code itself or what the code lacked: samples
// tell where the thread was.
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
    event.duration_ns = found.sample.duration_ns;
    SampleView{event}
        .set_weight_ns(found.sample.weight_ns)
        .set_doing(found.sample.doing);
    event.tid = Number(found.tid);
    event.series = derived_.OfSample(found.idle_series, found.sample.series);
    thread_regions_.AddSample(event);
    events_.push_back(event);
  }
}

void BlameFeed::OnIdle(const blame::Idle& idle) {
  Event event;
  event.start_ns = FromEngine(idle.start_ns);
  event.duration_ns = idle.end_ns - idle.start_ns;
  event.tid = Number(idle.tid);
  event.series = derived_.OfIdle(idle);
  regions_.AddIdle(idle.device, event.start_ns, event.start_ns + event.duration_ns,
                   static_cast<size_t>(idle.cause));
  Tell(EventType::kIdle, event, idle.device);
}

void BlameFeed::OnCoverage(const blame::Coverage& coverage) {
  Event event;
  event.start_ns = FromEngine(coverage.start_ns);
  event.duration_ns = coverage.end_ns - coverage.start_ns;
  regions_.AddTraced(coverage.device, event.start_ns,
                     event.start_ns + event.duration_ns);
  aggregate::CoverageView{event}
      .set_busy_ns(coverage.busy_ns)
      .set_kernel_ns(coverage.kernel_ns);
  event.series = derived_.OfCoverage(coverage.device);
  Tell(EventType::kCoverage, event, coverage.device);
  judged_.Told(coverage.device, FromEngine(coverage.end_ns));
}

void BlameFeed::OnSync(const blame::SyncCost& cost) {
  uint64_t end = FromEngine(cost.sync.end_ns);
  if (end <= judged_.restored_ns()) return;
  Event event;
  event.start_ns = FromEngine(cost.sync.start_ns);
  event.duration_ns = cost.sync.end_ns - cost.sync.start_ns;
  aggregate::SyncCostView{event}.set_needed_ns(cost.needed_ns);
  event.tid = Number(cost.sync.tid);
  event.series = derived_.OfSyncCost(cost.sync.series);
  events_.push_back(event);
}

void BlameFeed::OnSubmission(const blame::Submission& submission) {
  const blame::Operation& operation = submission.operation;
  uint64_t start = FromEngine(operation.start_ns);
  if (start < judged_.RestoredUntil(operation.device)) return;
  submitted_.push_back({derived_.OfSubmission(submission), start,
                        operation.end_ns - operation.start_ns});
}

}  // namespace lull::collector
