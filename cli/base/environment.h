// Environments for the processes that lull starts.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// Ours plus what makes the job report: `library` in front of LD_PRELOAD (once, also
// when lull runs under lull) and LULL_SOCKET. NVTX_INJECTION64_PATH makes NVTX pass
// ranges to the shim, unless another tool uses it. LULL_STEP_RANGE is set if the user
// named an NVTX range that is a step (`step_range` is not ""), LULL_SAMPLES if no
// samples are wanted, and LULL_FILTERS if we have seccomp filters: it says how many, as
// those are not the job's own. Nothing else differs, not even the order of the
// variables.
std::vector<std::string> EnvironmentWithShim(absl::string_view library,
                                             absl::string_view socket,
                                             absl::string_view step_range = "",
                                             bool samples = true);

// Ours without any trace of the shim: for lull's own processes.
std::vector<std::string> EnvironmentWithoutShim();

// "" for a variable that is not there.
std::string Variable(const char* name);

// The array that exec wants; valid as long as `strings` is.
std::vector<char*> Pointers(std::vector<std::string>& strings);

// Closes every descriptor from `first` on. Async-signal-safe.
void CloseFrom(unsigned first);

}  // namespace lull
