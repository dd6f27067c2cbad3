// The moment when most was live of a whole (aggregate::TotalOf), and what was live
// then.
//
// Found through the stored aggregates, from wide buckets to the second that holds the
// peak, and within that second event by event: a few dozen look-ups, however long the
// job is.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/aggregate/cell.h"
#include "daemon/query/sums.h"
#include "daemon/storage/store.h"

namespace lull::query {

struct Peak {
  int64_t bytes = 0;
  uint64_t time_ns = 0;  // after the start of the job
  // By series: allocations and frees from the start of the job to that moment. So
  // cell.live is what is live, and cell.blocks() is the number of blocks.
  std::vector<aggregate::Cell> cells;
};

// The first moment in `range` when most was live. `sums` are those of the range.
absl::StatusOr<Peak> FindPeak(storage::StoreReader& reader, const storage::JobRow& job,
                              const ProcessSums& sums, TimeRange range, uint32_t whole);

}  // namespace lull::query
