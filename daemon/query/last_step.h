// How long no step has ended: what tells of a job that hangs.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/query/recorded.h"
#include "daemon/storage/store.h"

namespace lull::query {

struct LastStep {
  // From the end of the newest step of any process until then, without what was not
  // recorded: there may have been steps that nobody saw.
  uint64_t since_ns = 0;
  uint64_t step_ns = 0;  // median of the newest 64 steps of the process that it is of
};

// At `at_ns` (CLOCK_MONOTONIC of the job's host), of these processes. nullopt: no step
// of theirs that the program marks had ended. That no period was found in launches says
// nothing. Of earlier times than a job's newest 5,000 steps not all are kept.
absl::StatusOr<std::optional<LastStep>> FindLastStep(
    storage::StoreReader& reader, const Recorded& recorded,
    const std::vector<storage::ProcessRow>& processes, uint64_t at_ns);

}  // namespace lull::query
