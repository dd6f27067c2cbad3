// Whether all ranks of a job are known: who came last is known only then.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/storage/store.h"

namespace lull::query {

// `ranks`: the processes that waited for others, in the order of their ranks.
// FAILED_PRECONDITION, and why, where nothing can be said of them.
absl::Status AreAll(const storage::JobRow& job,
                    const std::vector<const v1::ProcessInfo*>& ranks);

// Whether all that its host waited for is recorded of `rank`, a process of `part`.
// FAILED_PRECONDITION where steps were sampled: each rank holds its budget itself, and
// may rest in a step in which the others are recorded, and seem to be late.
absl::Status AreAllRecorded(const storage::JobRow& part,
                            const storage::ProcessRow& rank);

}  // namespace lull::query
