// What every report says about the GPU as a whole: how much was traced, how busy it
// was, and, where there is no GPU truth, why.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// Traced, idle and unknown time are clipped to the ranges of the processes exactly;
// busy is the traced time that is not idle. Losses are those of the whole job.
void FillGpu(const storage::JobRow& job, const std::vector<ProcessSums>& processes,
             Names& names, v1::Gpu* out);

// A sentence for Gpu.missing: why these processes have no traced time.
std::string WhyNoGpuTruth(const storage::JobRow& job,
                          const std::vector<ProcessSums>& processes);

// For how much of the idle time, in ns, a report names the line that worked or waited,
// and not just the two lines around it. docs/explained_idle.md has the rules and what
// programs reach.
uint64_t ExplainedNs(const std::vector<ProcessSums>& processes, Names& names,
                     Stacks& stacks);

void FillDevices(const std::vector<ProcessSums>& processes,
                 google::protobuf::RepeatedPtrField<v1::DeviceRow>* out);
void FillNonFinite(const storage::JobRow& job,
                   const std::vector<ProcessSums>& processes, Names& names,
                   google::protobuf::RepeatedPtrField<v1::NonFinite>* out);

}  // namespace lull::query
