// Training steps: the newest, the median of each part, and how well the device was used
// in those that were traced.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/query/sections.h"

namespace lull::query {

// One step with its parts.
void FillStepRow(const storage::JobRow& job, const storage::ProcessRow& process,
                 const storage::StepRow& step, lull::v1::StepRow* row);

// Those of a process in the range that is asked for, whatever phase is shown. Without
// control steps, of which nothing is known but how long they took.
absl::StatusOr<std::vector<storage::StepRow>> StepsOf(const View& view,
                                                      const ProcessSums& sums);

// The newest steps, as many as rows are asked for; 0: as many as are kept.
absl::Status FillSteps(View& view, lull::v1::ReportReply* reply);

// The time of full garbage collections since each process's first step:
// `full_in_steps`.
absl::Status FillCollectionsInSteps(View& view, lull::v1::GcPauses* reply);

// What a job does besides training: its set-up, evaluation, checkpoints, the end.
// Covers all the time of each process, whatever range is shown.
//
// Known for main threads, where set-up is known (phases.h). Times between steps are
// exact. Others are shares of samples whose stacks say for certain what they belong to:
// imports lie below importlib, moves of a model below Module.to, checkpoints below
// torch.save, evaluation below the loop that Lightning or transformers have for it.
// What is none of these is in no row.
absl::Status FillPhaseParts(View& view, v1::Steps* reply);

}  // namespace lull::query
