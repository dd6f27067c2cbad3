#include <algorithm>
#include <tuple>

#include "daemon/base/check.h"
#include "daemon/blame/engine_impl.h"
#include "daemon/blame/instant.h"

namespace lull::blame {
namespace {

constexpr size_t kMostDevices = 256;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kMostUnits = 1 << 20;  // longer is garbage

bool IsKernel(const Operation& operation) {
  return operation.kind == OperationKind::kKernel ||
         operation.kind == OperationKind::kGraph;
}

}  // namespace

void Engine::Impl::Sweep(uint64_t limit_ns) {
  while (true) {
    uint64_t mark = traced_.next_ns();
    uint64_t start = operations_.empty() ? kNever : operations_[0].start_ns;
    if (std::min(mark, start) >= limit_ns) break;
    if (mark <= start) {
      PassMark();
    } else if (!PassGroup()) {
      limit_ns = start;
    }
  }
  passed_ns_ = std::max(passed_ns_, limit_ns);
  if (!traced_.on()) return;
  // Beyond the last operation tracing may turn out to have ended.
  uint64_t traced = std::min(passed_ns_, busy_reach_ns_);
  for (auto& [id, device] : devices_) GiveUpOldest(device, traced);
}

void Engine::Impl::PassMark() {
  uint64_t time = traced_.next_ns();
  if (!traced_.Pass()) return;
  if (!traced_.on()) return EndGaps(time);
  for (auto& [id, device] : devices_) {
    if (device.used) device.StartTracing(time);
  }
}

// All operations that start at the same time, because none of them is before another.
bool Engine::Impl::PassGroup() {
  const uint64_t start = operations_[0].start_ns;
  size_t count = 0;
  passing_.clear();
  for (; count < operations_.size() && operations_[count].start_ns == start; ++count) {
    passing_.emplace_back();
    if (!Resolve(operations_[count], &passing_.back())) return false;
  }
  for (const Passing& passing : passing_) MeetLaunch(passing.launch);
  for (size_t i = 0; i < count; ++i) MeetDevice(operations_[i], &passing_[i]);
  CloseGaps();
  for (size_t i = 0; i < count; ++i) PassOperation(operations_[i], passing_[i]);
  operations_.DropFront(count);
  return true;
}

// False: the hooked event of its call may still come.
bool Engine::Impl::Resolve(const Operation& operation, Passing* passing) {
  passing->start_ns = operation.start_ns;
  passing->launch = calls_.Find(operation.correlation, operation.start_ns);
  if (passing->launch == LaunchIndex::kNone || host_ns_ == kNever) return true;
  if (calls_.launch(passing->launch) != nullptr) return true;
  uint64_t end = calls_.call(passing->launch).end_ns;
  return host_ns_ > Plus(end, options_.clock_tolerance_ns);
}

void Engine::Impl::MeetLaunch(uint32_t index) {
  if (index == LaunchIndex::kNone || calls_.launch(index) != nullptr) return;
  Launch& launch = calls_.AddLaunch(index);
  const ApiCall& call = launch.call;
  const ThreadTimeline& thread = ThreadOf(call.tid);
  const ThreadTimeline::Hook* hook =
      thread.HookOf(call.start_ns, call.end_ns, options_.clock_tolerance_ns);
  launch.returned_ns = call.end_ns;
  if (hook != nullptr) {
    launch.hook = hook->series;
    launch.returned_ns = std::max(call.end_ns, hook->end_ns);
  }
  Submitted last;
  if (!thread.LastBefore(call.start_ns, hook, &last)) return;
  launch.before = last.series;
  bool one_hook = last.returned_ns > call.start_ns;  // around both
  uint64_t since = one_hook ? last.end_ns : last.returned_ns;
  launch.launch_bound = call.start_ns - since <= options_.launch_bound_ns;
}

// Time of the device before this is judged, and stays as it is.
uint64_t Engine::Impl::Judged(const Device& device) const {
  return traced_.on() && device.used ? std::min(passed_ns_, device.idle_since())
                                     : passed_ns_;
}

void Engine::Impl::MeetDevice(const Operation& operation, Passing* passing) {
  auto it = devices_.find(operation.device);
  if (it == devices_.end()) {
    if (devices_.size() == kMostDevices) {
      ++counters_.late_operations;
      return;
    }
    it = devices_.try_emplace(operation.device, operation.device, sink_).first;
  }
  Device& device = it->second;
  passing->device = &device;
  if (operation.start_ns == operation.end_ns) return;
  bool first = !device.used;
  device.used = true;
  if (first && traced_.on()) device.StartTracing(traced_.since_ns());
  uint64_t judged = Judged(device);
  if (operation.start_ns < judged) ++counters_.late_operations;
  passing->start_ns = std::max(operation.start_ns, judged);
  passing->runs = passing->start_ns < operation.end_ns;
  // Nobody kept what threads did for a device that nobody had seen.
  if (first && traced_.on())
    GiveUp(device, Minus(passing->start_ns, options_.patience_ns));
}

void Engine::Impl::CloseGaps() {
  if (!traced_.on()) return;
  for (size_t i = 0; i < passing_.size(); ++i) {
    Device* device = passing_[i].device;
    if (!passing_[i].runs || passing_[i].start_ns <= device->idle_since()) continue;
    if (device->ends_gap < 0 || EndsGapBefore(i, device->ends_gap)) {
      device->ends_gap = static_cast<int64_t>(i);
    }
  }
  for (size_t i = 0; i < passing_.size(); ++i) {
    Device* device = passing_[i].device;
    if (!passing_[i].runs || device->ends_gap != static_cast<int64_t>(i)) continue;
    CloseGap(*device, i);
    device->ends_gap = -1;
  }
}

// If two start at once, X is the one submitted first; known launches come first.
bool Engine::Impl::EndsGapBefore(size_t a, int64_t b) {
  auto rank = [&](size_t index) {
    const Launch* launch = LaunchOf(passing_[index]);
    return std::make_tuple(launch == nullptr ? kNever : launch->call.start_ns,
                           operations_[index].correlation, index);
  };
  return rank(a) < rank(static_cast<size_t>(b));
}

void Engine::Impl::CloseGap(Device& device, size_t ender) {
  const Operation& operation = operations_[ender];
  GiveUpOldest(device, passing_[ender].start_ns);
  Gap gap;
  gap.device = device.id;
  gap.start_ns = device.idle_since();
  gap.end_ns = passing_[ender].start_ns;
  gap.sync_slack_ns = options_.clock_tolerance_ns;
  gap.opening_known = !device.torn();
  if (const Launch* launch = LaunchOf(passing_[ender])) {
    const ApiCall& call = launch->call;
    gap.launcher = {&ThreadOf(call.tid), call.tid, launch->before};
    gap.call_ns = call.start_ns;
    if (!launch->submitted) gap.call_end_ns = call.end_ns;
    gap.slow_call_ns = options_.slow_call_ns;
    gap.after = launch->after();
    gap.launch_bound = launch->launch_bound;
    uint64_t idle = std::max(device.busy_end_ns, traced_.since_ns());
    gap.dependency = streams_.Waited(operation, call.start_ns, idle);
    if (KnowsPredecessor(device) && device.ender_tid != call.tid) {
      gap.predecessor = SuspectOf(device.ender_tid, call.start_ns);
    }
  }
  JudgeInto(device, gap);
}

// Tracing ends at `end_ns`: nobody knows what would have come next.
void Engine::Impl::EndGaps(uint64_t end_ns) {
  for (auto& [id, device] : devices_) {
    if (!device.used) continue;
    EndGap(device, end_ns);
    device.EndTracing(end_ns);
  }
}

void Engine::Impl::EndGap(Device& device, uint64_t end_ns) {
  if (device.idle_since() >= end_ns) return;
  GiveUpOldest(device, end_ns);
  Gap gap;
  gap.device = device.id;
  gap.start_ns = device.idle_since();
  gap.end_ns = end_ns;
  gap.call_ns = end_ns;
  gap.sync_slack_ns = options_.clock_tolerance_ns;
  gap.ending_known = false;
  if (KnowsPredecessor(device)) gap.launcher = SuspectOf(device.ender_tid, end_ns);
  JudgeInto(device, gap);
}

bool Engine::Impl::KnowsPredecessor(const Device& device) const {
  return device.ender_known && device.busy_end_ns == device.idle_since();
}

Suspect Engine::Impl::SuspectOf(ThreadId tid, uint64_t time_ns) {
  ThreadTimeline& thread = ThreadOf(tid);
  Submitted last;
  thread.LastBefore(time_ns, nullptr, &last);
  return {&thread, tid, last.series};
}

// Idle time before `time_ns` that is not judged yet stays unknown.
void Engine::Impl::GiveUp(Device& device, uint64_t time_ns) {
  if (!device.used || device.idle_since() >= time_ns) return;
  Gap gap;
  gap.device = device.id;
  gap.start_ns = device.idle_since();
  gap.end_ns = time_ns;
  JudgeInto(device, gap);
  device.floor_ns = time_ns;
  device.floor_torn = true;
}

// The gap reaches to `end_ns` at least. Given up in whole units, one by one, so that
// the parts do not depend on when it was seen to be too long.
void Engine::Impl::GiveUpOldest(Device& device, uint64_t end_ns) {
  uint64_t unit = options_.coverage_ns != 0 ? options_.coverage_ns : kSecond;
  uint64_t last = Minus(end_ns, options_.longest_gap_ns) / unit;
  uint64_t first = device.idle_since() / unit;
  if (first >= last) return;
  if (last - first > kMostUnits) first = last - 1;
  for (; first < last; ++first) GiveUp(device, (first + 1) * unit);
}

void Engine::Impl::JudgeInto(Device& device, const Gap& gap) {
  parts_.clear();
  Judge(gap, lost_, &parts_);
  uint64_t judged_ns = gap.start_ns;
  for (const Part& part : parts_) {
    LULL_CHECK(part.idle.start_ns == judged_ns && part.idle.end_ns > judged_ns,
               "the causes of a gap do not follow each other");
    judged_ns = part.idle.end_ns;
    device.AddPart(part);
  }
  LULL_CHECK(judged_ns == std::max(gap.start_ns, gap.end_ns),
             "the causes of a gap do not sum to it");
}

void Engine::Impl::PassOperation(const Operation& operation, const Passing& passing) {
  Launch* launch = LaunchOf(passing);
  uint64_t submit = launch != nullptr ? launch->call.start_ns : operation.start_ns;
  streams_.Pass(operation, submit);
  Submission submission;
  submission.operation = operation;
  if (launch != nullptr) {
    submission.launch = launch->hook;
    submission.call = launch->call.series;
    submission.tid = launch->call.tid;
    launch->latest_ns = std::max(launch->latest_ns, operation.start_ns);
    if (!launch->submitted) {
      const ApiCall& call = launch->call;
      ThreadOf(call.tid).AddSubmission(
          {call.start_ns, call.end_ns, launch->after(), launch->returned_ns});
    }
    launch->submitted = true;
  }
  if (passing.device == nullptr) return sink_.OnSubmission(submission);
  passing.device->AddSubmission(submission);
  if (passing.runs) Occupy(*passing.device, operation, passing, launch);
}

void Engine::Impl::Occupy(Device& device, const Operation& operation,
                          const Passing& passing, const Launch* launch) {
  device.AddBusy(passing.start_ns, operation.end_ns, IsKernel(operation));
  busy_.Add(passing.start_ns, operation.end_ns);
  busy_reach_ns_ = std::max(busy_reach_ns_, operation.end_ns);
  if (operation.end_ns < device.busy_end_ns) return;
  if (operation.end_ns > device.busy_end_ns) device.ender_known = false;
  device.busy_end_ns = operation.end_ns;
  if (launch == nullptr) return;
  auto rank = std::make_tuple(launch->call.start_ns, launch->call.tid);
  if (device.ender_known &&
      rank < std::make_tuple(device.ender_submit_ns, device.ender_tid)) {
    return;
  }
  device.ender_known = true;
  std::tie(device.ender_submit_ns, device.ender_tid) = rank;
}

}  // namespace lull::blame
