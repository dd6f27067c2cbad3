// What a report says about a job as a whole: the job, its processes, losses, overhead.
#pragma once

#include <vector>

#include "daemon/query/run_parts.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// Does GPU work or allocates tensors.
bool Works(const storage::ProcessRow& process);

// The processes that a request is about: those with its pid; those with its rank;
// of these (or of all) the ones that work, or all if none does.
std::vector<storage::ProcessRow> SelectProcesses(
    const std::vector<storage::ProcessRow>& all, const v1::ReportRequest& request);

// Has the request's pid and rank.
bool Fits(const storage::ProcessRow& process, const v1::ReportRequest& request);

// When it ended, or was last heard of; CLOCK_MONOTONIC.
uint64_t EndOf(const storage::JobRow& job, const storage::ProcessRow& process);

absl::Status FillJob(RunParts& parts, const storage::JobRow& job, v1::Job* out);
// Whether of one of these, the processes of `job`, only some steps are recorded.
bool AreStepsSampled(const storage::JobRow& job,
                     const std::vector<storage::ProcessRow>& processes);

// Covers all processes with the request's pid or rank, or all processes. Those that do
// no work count, too: a process that was given up early had no time to work.
absl::Status FillLosses(storage::StoreReader& reader, const storage::JobRow& job,
                        const v1::ReportRequest& request, v1::Losses* out);
void FillOverhead(const storage::JobRow& job, const std::vector<ProcessSums>& processes,
                  v1::Overhead* out);
// What tracing cost the steps on the wall clock: of the first process for which it can
// be told. If there is none: of the first that was traced in steps, without estimates.
absl::Status FillStepCost(storage::StoreReader& reader, const storage::JobRow& job,
                          const std::vector<ProcessSums>& processes, v1::Overhead* out);

void FillProcess(const storage::JobRow& job, const ProcessSums& sums,
                 v1::ProcessRow* out);

}  // namespace lull::query
