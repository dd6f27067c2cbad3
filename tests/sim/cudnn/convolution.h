// Operations of a graph as kernels.
#pragma once

#include "tests/sim/cudnn/descriptor.h"

namespace lull::sim {

// Launches what computes `operation` on `stream`; false if the device refuses.
bool launch_operation(const Bag& operation, void* stream);

}  // namespace lull::sim
