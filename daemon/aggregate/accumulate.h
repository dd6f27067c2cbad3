// How one event changes cells. Ingest and the exact edges of a query both go
// through here, so that they cannot disagree.
//
// The order of memory events decides on peaks: give them in the order of MemoryOrderNs.
// The order of all other events makes no difference.
#pragma once

#include <cstdint>

#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// When a memory event takes effect: a block exists once the allocating call has
// returned, and is gone when the freeing call starts.
inline uint64_t MemoryOrderNs(const Event& event) {
  return (event.flags & kFlagFree) != 0 ? event.start_ns
                                        : event.start_ns + event.duration_ns;
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
    case EventType::kSync:
    case EventType::kCopyAsync:
      return cell.Add(event.duration_ns, CopyCallView{event}.bytes(), 0);
    case EventType::kDeviceMemory:
    case EventType::kTorchMemory:
      return cell.Add(event.duration_ns, MemoryView{event}.bytes(), 0);
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

// Of one that AddsLive.
inline uint64_t BytesMadeLive(const Series& series, const Event& event) {
  return series.type == EventType::kTorchReserved ? ReservedView{event}.bytes()
                                                  : MemoryView{event}.bytes();
}

// What is live, after LiveBlocks has said what the event released. `cell_of(id)`
// gives the cell of a series, `series_of(id)` the series.
template <typename CellOf, typename SeriesOf>
void AddMemory(const Event& event, CellOf&& cell_of, SeriesOf&& series_of) {
  auto for_each_cell = [&](uint32_t id, auto change) {
    const Series& series = series_of(id);
    for (uint32_t carrier :
         {id, series.line_group, series.function_group, series.total_group}) {
      if (carrier != 0) change(cell_of(carrier));
    }
  };
  auto change = [&](uint32_t id, int64_t bytes) {
    for_each_cell(id, [bytes](Cell& cell) { cell.Change(bytes); });
  };
  auto release = [&](uint32_t id, uint64_t bytes) {
    if (IsBefore(series_of(id))) return change(id, -static_cast<int64_t>(bytes));
    for_each_cell(id, [bytes](Cell& cell) { cell.Release(bytes); });
  };
  const Series& series = series_of(event.series);
  if (series.type == EventType::kForgotten) {
    return for_each_cell(event.released_series, [&event](Cell& cell) {
      cell.Forget(ForgottenView{event}.blocks(), event.released_bytes);
    });
  }
  const bool over = (event.flags & kFlagFreedEarlier) != 0;
  if (event.released_series != 0 && !over) {
    release(event.released_series, event.released_bytes);
  }
  if (IsFree(series) && !IsFailed(series) && event.released_series == 0 &&
      MemoryView{event}.address() != 0) {
    ++cell_of(event.series).frees;  // of a block that we do not know
  }
  if (!AddsLive(series)) return;
  if (over && series.type == EventType::kTorchReserved) return;
  const uint64_t bytes = BytesMadeLive(series, event);
  for_each_cell(event.series, [&](Cell& cell) { cell.Allocate(bytes); });
  if (!over) return;
  release(event.series, bytes);
  if (event.released_series != 0) {  // that free was not of this one after all
    change(event.released_series, static_cast<int64_t>(bytes));
  }
}

// The same event as changes of wholes: visit(when, series that carries the whole,
// bytes).
template <typename SeriesOf, typename Visitor>
void ForEachTotalChange(const Event& event, SeriesOf&& series_of, Visitor&& visit) {
  const uint64_t now = MemoryOrderNs(event);
  const bool over = (event.flags & kFlagFreedEarlier) != 0;
  if (event.released_series != 0 && !over) {
    visit(now, TotalOf(event.released_series, series_of(event.released_series)),
          -static_cast<int64_t>(event.released_bytes));
  }
  const Series& series = series_of(event.series);
  if (!AddsLive(series)) return;
  if (over && series.type == EventType::kTorchReserved) return;
  const uint32_t total = TotalOf(event.series, series);
  const auto bytes = static_cast<int64_t>(BytesMadeLive(series, event));
  visit(now, total, bytes);
  if (!over) return;
  visit(now + event.released_bytes, total, -bytes);
  if (event.released_series == 0) return;
  visit(now + event.released_bytes,
        TotalOf(event.released_series, series_of(event.released_series)), bytes);
}

}  // namespace lull::aggregate
