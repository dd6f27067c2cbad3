// What every report says about the GPU as a whole: how much was traced, how busy it
// was, and, where there is no GPU truth, why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/query/sections.h"

namespace lull::query {

// Traced, idle and unknown time are clipped to the ranges of the processes exactly;
// busy is the traced time that is not idle. Losses are those of the whole job.
void FillGpu(View& view, v1::Gpu* out);

// A sentence for Gpu.missing: why these processes have no traced time.
std::string WhyNoGpuTruth(const storage::JobRow& job,
                          const std::vector<ProcessSums>& processes);

// For how much of the idle time, in ns, a report names the line that worked or waited,
// and not just the two lines around it. docs/explained_idle.md has the rules and what
// programs reach.
uint64_t ExplainedNs(View& view);

void FillDevices(const View& view, v1::ReportReply* reply);
void FillNonFinite(View& view, v1::ReportReply* reply);

}  // namespace lull::query
