// What `lull memory` is made of: the moment when most was live of a whole
// (aggregate::TotalOf), and how much was live over time.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/query/sections.h"

namespace lull::query {

struct Peak {
  int64_t bytes = 0;
  uint64_t time_ns = 0;  // after the start of the job
  // By series: allocations and frees from the start of the job to that moment. So
  // cell.live is what is live, and cell.blocks() is the number of blocks.
  std::vector<Cell> cells;
};

// The first moment in the range when most was live. `sums` are those of the range.
// Found through the stored aggregates, from wide buckets to the second that holds the
// peak, and within that second event by event: a few dozen look-ups, however long the
// job is.
absl::StatusOr<Peak> FindPeak(const View& view, const ProcessSums& sums,
                              uint32_t whole);

struct MemoryPoint {
  uint64_t step = 0;
  uint64_t time_ns = 0;  // after the start of the job
  int64_t live = 0;
  int64_t reserved = 0;
};

// At the ends of the steps that end in the range. `reserved`: series, 0 = none.
std::vector<MemoryPoint> PointsOfSteps(const View& view,
                                       const std::vector<storage::StepMemoryRow>& steps,
                                       uint32_t whole, uint32_t reserved);

// Where there are no steps: at the ends of those buckets in the range in which
// something changed. Buckets are as wide as needed for about a thousand at most.
absl::StatusOr<std::vector<MemoryPoint>> PointsOfTime(const View& view, int64_t process,
                                                      uint32_t whole,
                                                      uint32_t reserved);

}  // namespace lull::query
