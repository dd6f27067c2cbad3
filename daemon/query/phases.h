// Set-up and steady state of a process, by its steps. Imports, the first batches and
// the warm-up of compilers and allocators are not part of what training costs.
//
// Told where the program marks steps (optimizer or NVTX range) and took at least
// kEnoughSteps. The steady state begins with the first whole second after the warm-up
// steps: sums over whole seconds are exact, those of launches by line included. Where
// that leaves less than half of the steady state, the job is too short to be divided.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "daemon/steps/step_cost.h"
#include "daemon/storage/store.h"

namespace lull::query {

// The first steps of a process compile, tune and allocate.
inline constexpr uint64_t kWarmUpSteps = steps::kWarmUpSteps;
inline constexpr uint64_t kEnoughSteps = 10;
static_assert(kEnoughSteps <= storage::kFirstSteps);

// When the steady state begins, in ns after the job's start; nullopt: that is not
// known. `end_ns`: when the process ended, or was last heard of, on its own clock.
absl::StatusOr<std::optional<uint64_t>> SteadySince(storage::StoreReader& reader,
                                                    const storage::JobRow& job,
                                                    const storage::ProcessRow& process,
                                                    uint64_t end_ns);

}  // namespace lull::query
