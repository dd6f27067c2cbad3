// Environments for the processes that lull starts.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// Ours plus what makes the job report: `library` in front of LD_PRELOAD (once,
// also when lull runs under lull) and LULL_SOCKET; NVTX_INJECTION64_PATH makes NVTX
// tell the shim of ranges, unless another tool has it. Nothing else differs, the order
// of the variables included; only where the user named an NVTX range that is a step
// (`step_range` is not ""), LULL_STEP_RANGE says so, where no samples are wanted
// LULL_SAMPLES does, and where seccomp filters are on us, LULL_FILTERS says how many:
// those are not the job's own.
std::vector<std::string> EnvironmentWithShim(absl::string_view library,
                                             absl::string_view socket,
                                             absl::string_view step_range = "",
                                             bool samples = true);

// Ours without any trace of the shim: for lull's own processes.
std::vector<std::string> EnvironmentWithoutShim();

// The array that exec wants; valid as long as `strings` is.
std::vector<char*> Pointers(std::vector<std::string>& strings);

// Closes every descriptor from `first` on. Async-signal-safe.
void CloseFrom(unsigned first);

}  // namespace lull
