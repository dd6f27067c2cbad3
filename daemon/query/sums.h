// The sums over a range of time, for each series of a process: whole buckets from
// the stored aggregates, the edges from the stored events.
//
// An event counts when it starts in the range. A stretch of device time counts with the
// part that lies there. Operations by their launching line (kSubmission) are not stored
// one by one: they count when the second in which they start begins there.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/series.h"
#include "daemon/query/recorded.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// What all of this folder is about.
using aggregate::Cell;
using aggregate::Event;
using aggregate::EventType;
using aggregate::Series;

// [since, until) in nanoseconds after the start of the job.
struct TimeRange {
  uint64_t since = 0;
  uint64_t until = aggregate::kForever;

  bool all() const { return since == 0 && until == aggregate::kForever; }
};

TimeRange RangeOf(const v1::ReportRequest& request);

// As the host's clock has it. What lies before the start of the job belongs to its
// first instant.
uint64_t Absolute(const storage::JobRow& job, uint64_t after_start);

struct ProcessSums {
  storage::ProcessRow process;
  TimeRange range;
  std::vector<storage::RingRow> rings;
  std::vector<Series> series;        // by id
  std::vector<Cell> cells;           // by series id: over the range
  std::vector<int64_t> live_before;  // by series id: live at the range's start
  std::vector<storage::GpuDeviceRow> devices;
  std::vector<storage::TracingRow> tracing;       // in the order of time
  std::vector<storage::NonFiniteRow> non_finite;  // one at most
  Recorded recorded;                              // of the job

  int64_t LiveAtEnd(uint32_t id) const { return live_before[id] + cells[id].live; }
  int64_t Peak(uint32_t id) const { return live_before[id] + cells[id].peak; }

  // Calls visit(series, cell) for every series.
  template <typename Visitor>
  void ForEach(Visitor&& visit) const {
    for (size_t id = 1; id < series.size(); ++id) visit(series[id], cells[id]);
  }
};

// Beyond so many changes of tracing none are kept: after that time nobody knows when
// the GPU was traced.
inline uint64_t TracingKnownUntil(const std::vector<storage::TracingRow>& changes) {
  return changes.size() < storage::kMostTracing ? UINT64_MAX : changes.back().start_ns;
}

absl::StatusOr<ProcessSums> LoadSums(storage::StoreReader& reader,
                                     const storage::JobRow& job,
                                     const storage::ProcessRow& process,
                                     TimeRange range);

}  // namespace lull::query
