// What a job does besides training: its set-up, evaluation, checkpoints, the end.
//
// Known for main threads, where set-up is known (phases.h). Times between steps are
// exact. Others are shares of samples whose stacks say for certain what they belong to:
// imports lie below importlib, moves of a model below Module.to, checkpoints below
// torch.save, evaluation below the loop that Lightning or transformers have for it.
// What is none of these is in no row.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// The first kind whose frame comes, from the outermost on: an import that evaluates is
// an import. nullopt: none.
std::optional<lull::v1::PhasePartKind> KindOfStack(Stacks& stacks,
                                                   const std::vector<uint32_t>& frames);

// Covers all the time of each process, whatever range is shown.
absl::Status FillPhaseParts(storage::StoreReader& reader, const storage::JobRow& job,
                            const std::vector<ProcessSums>& processes, Stacks& stacks,
                            lull::v1::Steps* reply);

}  // namespace lull::query
