// The jobs that are parts of one: what several `lull run` recorded of a run on several
// hosts, or of several ranks on one. What one relay told stays a job of its own in the
// store, with its own clock (docs/decisions/parts_of_a_run.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/storage/store.h"

namespace lull::query {

// A job whose ranks told the same run id as those of others.
struct PartLife {
  uint64_t start_ns = 0;  // CLOCK_REALTIME
  uint64_t end_ns = 0;    // as far as is known; UINT64_MAX: nobody saw its end
  std::string user;
  std::map<int32_t, int32_t> ranks;  // with the size of their world
};

// For each part the number of the whole that it belongs to, from 0 on. Parts come in
// the order of their starts. Two are of one whole only if they lived at one time, are
// one user's, have ranks, none in common, and agree on how many there are: a rank that
// comes again is another attempt or another job, whatever their run is called.
std::vector<size_t> Wholes(const std::vector<PartLife>& parts);

// All parts of what `job` is a part of, in the order of their starts, itself included.
absl::StatusOr<std::vector<storage::JobRow>> PartsOf(storage::StoreReader& reader,
                                                     const storage::JobRow& job);

// The part of `job`'s whole that has the rank; itself where it has it, or none does.
absl::StatusOr<storage::JobRow> PartWithRank(storage::StoreReader& reader,
                                             const storage::JobRow& job, int32_t rank);

}  // namespace lull::query
