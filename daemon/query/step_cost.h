// What tracing cost the steps of a job on the wall clock.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/query/sums.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// For the first process for which it can be told. If there is none: for the first that
// was traced in steps, without estimates.
absl::Status FillStepCost(storage::StoreReader& reader,
                          const std::vector<ProcessSums>& processes,
                          lull::v1::Overhead* out);

}  // namespace lull::query
