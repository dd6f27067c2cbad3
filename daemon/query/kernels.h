// What ran on the GPU in traced time: kernels by name, copies by direction.
#pragma once

#include "absl/status/status.h"
#include "daemon/query/sections.h"

namespace lull::query {

// A whole graph launch, whose nodes are not told apart, is a kernel of this name.
inline constexpr char kGraphName[] = "CUDA graph";

// How well the kernels of the range fill the device: means over their time, in percent.
// 0 where their launch shapes or the device are not known (graphs).
struct KernelQuality {
  double multiprocessors = 0;  // that have a block: min(1, blocks per multiprocessor)
  double occupancy = 0;        // estimated
  double tensor_core = 0;      // share of time in kernels that use them
};
KernelQuality QualityOf(View& view);

absl::Status FillKernels(View& view, lull::v1::ReportReply* reply);

}  // namespace lull::query
