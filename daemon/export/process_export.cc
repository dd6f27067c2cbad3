#include "daemon/export/process_export.h"

#include <algorithm>
#include <cmath>

#include "daemon/aggregate/event_views.h"
#include "daemon/query/sums.h"

namespace lull::exports {
namespace {

using aggregate::Event;
using aggregate::EventType;

constexpr uint32_t kNoCorrelation = UINT32_MAX;
constexpr size_t kMostThreads = 4096;

uint32_t Correlation(uint32_t id) { return id == kNoCorrelation ? 0 : id; }

}  // namespace

uint64_t ProcessExport::Time(uint64_t ns) const {
  return aggregate::AfterStart(ns, job_start_ns_);
}

void ProcessExport::Take(const Event& event) {
  if (!labels_.has(event.series)) return;
  const EventType type = labels_.series(event.series).type;
  if (aggregate::ChangesLive(type)) TakeLevels(event);
  if (event.start_ns < since_ns_) return;
  switch (type) {
    case EventType::kApiCall:
      return TakeCall(event);
    case EventType::kTorchMemory:
      return TakeMemory(event);
    case EventType::kCoverage:
      return TakeCoverage(event);
    case EventType::kIdle:
      return TakeIdle(event);
    case EventType::kScope:
      if (!ScopeView{event}.ended_here()) return;
      break;
    case EventType::kLaunch:
    case EventType::kSync:
    case EventType::kCopyAsync:
    case EventType::kDeviceMemory:
      lines_.AddHook({event.series, SliceOf(event)});
      return Write(lines_.Take());
    default:
      break;
  }
  TakeSlice(event);
}

void ProcessExport::Finish() {
  WriteIdle();
  WriteCalls();
  Write(lines_.TakeAll());
  levels_.Finish(
      [this](Measure measure, uint32_t device, uint64_t time_ns, int64_t bytes) {
        writer_.AddMeasure(measure, device, Time(time_ns), static_cast<double>(bytes));
      });
}

Slice ProcessExport::SliceOf(const Event& event) const {
  Slice slice;
  slice.start_ns = Time(event.start_ns);
  slice.duration_ns = event.duration_ns;
  slice.tid = event.tid;
  return slice;
}

void ProcessExport::TakeSlice(const Event& event) {
  const aggregate::Series& series = labels_.series(event.series);
  const Label& label = labels_.Of(event.series);
  if (label.row == Row::kNone) return;
  Slice slice = SliceOf(event);
  if (aggregate::IsOperation(series.type)) {
    slice.correlation = Correlation(Number(OperationView{event}.correlation()));
    if (label.amount != nullptr) slice.amount = GpuCopyView{event}.bytes();
  }
  if (label.row == Row::kSteps) {
    if (event.duration_ns == 0) return;  // of the first only the end is known
    slice.number = StepView{event}.number();
  }
  writer_.Add(event.series, label, slice);
}

void ProcessExport::TakeIdle(const Event& event) {
  const uint32_t device = Number(aggregate::DeviceOf(labels_.series(event.series)));
  const Slice slice = SliceOf(event);
  auto [it, fresh] = idle_.try_emplace(device, IdleStretch{event.series, slice});
  if (fresh) return;
  IdleStretch& before = it->second;
  if ((event.flags & aggregate::kFlagContinued) != 0 && before.series == event.series &&
      before.slice.start_ns + before.slice.duration_ns == slice.start_ns) {
    before.slice.duration_ns += slice.duration_ns;
    return;
  }
  writer_.Add(before.series, labels_.Of(before.series), before.slice);
  before = {event.series, slice};
}

void ProcessExport::WriteIdle() {
  for (const auto& [device, idle] : idle_) {
    writer_.Add(idle.series, labels_.Of(idle.series), idle.slice);
  }
  idle_.clear();
}

// A call of the driver within one of the runtime has the same number, which readers
// want to find once: the outer one has it, and comes right behind.
void ProcessExport::TakeCall(const Event& event) {
  const ApiCallView told{event};
  Call call{event.series, SliceOf(event)};
  call.slice.tid = Number(told.caller());
  call.slice.correlation = Correlation(Number(told.correlation()));
  lines_.AddCall(call.slice);
  Write(lines_.Take());
  auto [it, fresh] = calls_.try_emplace(call.slice.tid, call);
  if (!fresh) {
    Call& before = it->second;
    if (before.slice.correlation == call.slice.correlation &&
        before.slice.start_ns >= call.slice.start_ns) {
      before.slice.correlation = 0;
    }
    Write(before);
    before = call;
  }
  if (calls_.size() > kMostThreads) WriteCalls();
}

void ProcessExport::WriteCalls() {
  for (const auto& [tid, call] : calls_) Write(call);
  calls_.clear();
}

// CUPTI tells of calls that submit or block, and while it traces: the others are told
// as the hooks have them.
void ProcessExport::Write(const std::vector<Call>& hooks) {
  for (const Call& hook : hooks) {
    Write(hook);
    if (!hook.has_call) {
      writer_.Add(labels_.CallOf(hook.series), labels_.CallLabel(hook.series),
                  hook.slice);
    }
  }
}

void ProcessExport::Write(const Call& call) {
  const Label& label = labels_.Of(call.series);
  if (label.row != Row::kNone) writer_.Add(call.series, label, call.slice);
}

void ProcessExport::TakeMemory(const Event& event) {
  const aggregate::Series& series = labels_.series(event.series);
  if ((series.variant & (aggregate::kVariantFailed | aggregate::kVariantBefore)) != 0) {
    return;
  }
  const MemoryView told{event};
  TensorMemory memory;
  memory.time_ns = Time(event.start_ns);
  memory.tid = event.tid;
  memory.address = told.address();
  const auto bytes = static_cast<int64_t>(std::min<uint64_t>(
      told.bytes() != 0 ? told.bytes() : event.released_bytes, INT64_MAX));
  memory.bytes = aggregate::IsFree(series) ? -bytes : bytes;
  memory.device_type = TypeOf(told.device());
  memory.device = IndexOf(told.device());
  if (memory.bytes != 0) writer_.AddMemory(memory);
}

void ProcessExport::TakeLevels(const Event& event) {
  levels_.Add(
      event, [this](Measure measure, uint32_t device, uint64_t time_ns, int64_t bytes) {
        writer_.AddMeasure(measure, device, Time(time_ns), static_cast<double>(bytes));
      });
}

void ProcessExport::TakeCoverage(const Event& event) {
  if (event.duration_ns == 0) return;
  const double share = static_cast<double>(aggregate::CoverageView{event}.busy_ns()) /
                       static_cast<double>(event.duration_ns);
  writer_.AddMeasure(Measure::kBusy,
                     Number(aggregate::DeviceOf(labels_.series(event.series))),
                     Time(event.start_ns), std::round(1000 * share) / 10);
}

}  // namespace lull::exports
