// What ran on the GPU in traced time: kernels by name, copies by direction.
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// A whole graph launch, whose nodes are not told apart, is a kernel of this name.
inline constexpr char kGraphName[] = "CUDA graph";

void FillKernels(const std::vector<ProcessSums>& processes,
                 const lull::v1::ReportRequest& request, Names& names,
                 lull::v1::KernelsReply* reply);

}  // namespace lull::query
