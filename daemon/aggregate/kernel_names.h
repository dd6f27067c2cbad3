// What the name of a kernel tells about it. The only list of such names; extend it
// here, and the test beside it with a name as the tools print it.
#pragma once

#include <string_view>

namespace lull::aggregate {

// Uses the tensor cores. `name` is demangled. An estimate: libraries name their kernels
// after the instruction as a rule, and nothing obliges them to.
bool IsTensorCoreKernel(std::string_view name);

// Moves data between GPUs on behalf of a collective or a point-to-point call (NCCL).
bool IsCommunicationKernel(std::string_view name);

}  // namespace lull::aggregate
