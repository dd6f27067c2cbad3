// How one memory event changes what is live. Ingest and the exact edges of a query both
// go through here, so that they cannot disagree.
//
// The order of memory events decides on peaks: give them in the order of MemoryOrderNs.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/drawn_blocks.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/event_views.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// When a memory event takes effect: a block exists once the allocating call has
// returned, and is gone when the freeing call starts.
inline uint64_t MemoryOrderNs(const Event& event) {
  return (event.flags & kFlagFree) != 0 ? event.start_ns
                                        : event.start_ns + event.duration_ns;
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
  // `blocks` of `bytes` each: as what they stand for, and in wholes as what they are.
  auto for_each_cell = [&](uint32_t id, uint64_t blocks, uint64_t bytes, auto change) {
    const Series& series = series_of(id);
    DrawnWeight told{blocks * bytes, blocks};
    if (IsDrawn(series)) {
      const DrawnWeight one = WeightOfDrawn(bytes);
      told = {blocks * one.bytes, blocks * one.parts};
    }
    for (uint32_t carrier : {id, series.line_group, series.function_group}) {
      if (carrier != 0) change(cell_of(carrier), told.bytes, told.parts);
    }
    if (series.total_group != 0) {
      change(cell_of(series.total_group), blocks * bytes, blocks);
    }
  };
  auto change = [&](uint32_t id, int64_t bytes) {
    for_each_cell(id, 1, 0,
                  [bytes](Cell& cell, uint64_t, uint64_t) { cell.Change(bytes); });
  };
  auto release = [&](uint32_t id, uint64_t bytes) {
    if (IsBefore(series_of(id))) return change(id, -static_cast<int64_t>(bytes));
    for_each_cell(id, 1, bytes, [](Cell& cell, uint64_t told, uint64_t blocks) {
      cell.Release(told, blocks);
    });
  };
  const Series& series = series_of(event.series);
  if (series.type == EventType::kForgotten) {
    // Of drawn blocks those of one size alone (LiveBlocks::Forget).
    const uint64_t blocks = std::max<uint64_t>(ForgottenView{event}.blocks(), 1);
    const bool drawn = IsDrawn(series_of(event.released_series));
    return for_each_cell(event.released_series, drawn ? blocks : 1,
                         drawn ? event.released_bytes / blocks : event.released_bytes,
                         [&](Cell& cell, uint64_t told, uint64_t parts) {
                           cell.Forget(drawn ? parts : ForgottenView{event}.blocks(),
                                       told);
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
  for_each_cell(event.series, 1, bytes,
                [](Cell& cell, uint64_t told, uint64_t) { cell.Allocate(told); });
  // What the cells of its series do not say: what it was.
  if (IsDrawn(series) && series.total_group != 0) {
    cell_of(series.total_group).Count(bytes);
  }
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
