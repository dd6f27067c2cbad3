// How much was live over time: at the ends of steps, or by time where there are none.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/query/sums.h"
#include "daemon/storage/store.h"

namespace lull::query {

struct MemoryPoint {
  uint64_t step = 0;
  uint64_t time_ns = 0;  // after the start of the job
  int64_t live = 0;
  int64_t reserved = 0;
};

// At the ends of the steps that end in `range`. `reserved`: series, 0 = none.
std::vector<MemoryPoint> PointsOfSteps(const std::vector<storage::StepMemoryRow>& steps,
                                       uint64_t job_start_ns, TimeRange range,
                                       uint32_t whole, uint32_t reserved);

// At the ends of those buckets in `range` in which something changed. Buckets are as
// wide as needed for about a thousand at most.
absl::StatusOr<std::vector<MemoryPoint>> PointsOfTime(storage::StoreReader& reader,
                                                      const storage::JobRow& job,
                                                      int64_t process, TimeRange range,
                                                      uint32_t whole,
                                                      uint32_t reserved);

}  // namespace lull::query
