// How one event changes cells. Ingest and the exact edges of a query both go
// through here, so that they cannot disagree. The order of events makes no difference;
// what is live is accumulate_memory.h's.
#pragma once

#include <cstdint>

#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/control_step.h"
#include "daemon/aggregate/drawn_blocks.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// Of an allocation, as cells of its series count it.
inline void AddAllocation(const Series& series, uint64_t bytes, uint64_t duration_ns,
                          Cell& cell) {
  if (!IsDrawn(series)) return cell.Add(duration_ns, bytes, 0);
  const DrawnWeight weight = WeightOfDrawn(bytes);
  cell.count += weight.parts;
  cell.amount += weight.bytes;
}

// Count and time of any event, bytes of those that have some.
inline void AddEvent(const Series& series, const Event& event, Cell& cell) {
  if (IsBefore(series)) return;  // nobody's call
  switch (series.type) {
    case EventType::kGcPause:
      return cell.Add(event.duration_ns, GcPauseView{event}.collected(),
                      GcPauseView{event}.uncollectable());
    case EventType::kCoverage:
      return cell.Add(event.duration_ns, CoverageView{event}.busy_ns(),
                      CoverageView{event}.kernel_ns());
    case EventType::kStep:
      return cell.Add(
          event.duration_ns,
          (event.flags & kFlagCutOff) != 0 ? 0 : StepView{event}.rested_ns(), 0);
    case EventType::kSync:
    case EventType::kCopyAsync:
      return cell.Add(event.duration_ns, CopyCallView{event}.bytes(), 0);
    case EventType::kDeviceMemory:
    case EventType::kTorchMemory:
      return AddAllocation(series, MemoryView{event}.bytes(), event.duration_ns, cell);
    case EventType::kSyncCost:
      return cell.Add(event.duration_ns, SyncCostView{event}.needed_ns(), 0);
    case EventType::kForgotten:
      return;
    case EventType::kGpuCopy:
    case EventType::kGpuMemset:
      return cell.Add(event.duration_ns, GpuCopyView{event}.bytes(), 0);
    case EventType::kGpuLost:
      return cell.Add(event.duration_ns, LostView{event}.records(), 0);
    case EventType::kHostSample:
    case EventType::kGapSample:
    case EventType::kEngineSample:
      // A weight that is known exactly has no square (host_sample.h).
      return cell.Add(
          SampleView{event}.weight_ns(),
          event.duration_ns != 0 ? 0 : SquareOfWeight(SampleView{event}.weight_ns()),
          0);
    case EventType::kRunDelay:
      return cell.Add(RunDelayView{event}.delay_ns(), RunDelayView{event}.migrations(),
                      RunDelayView{event}.preemptions());
    case EventType::kIdle:
      if ((event.flags & kFlagContinued) == 0) cell.Add(event.duration_ns, 0, 0);
      return cell.AddTime((event.flags & kFlagContinued) == 0 ? 0 : event.duration_ns,
                          event.duration_ns + IdleView{event}.rest_ns());
    default:  // no argument is an amount
      return cell.Add(event.duration_ns, 0, 0);
  }
}

}  // namespace lull::aggregate
