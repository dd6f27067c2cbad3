// Environments for the processes that lull starts.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull {

// Ours plus what makes the job report: `library` in front of LD_PRELOAD (once,
// also when lull runs under lull) and LULL_SOCKET. Nothing else differs, the
// order of the variables included.
std::vector<std::string> EnvironmentWithShim(absl::string_view library,
                                             absl::string_view socket);

// Ours without any trace of the shim: for lull's own processes.
std::vector<std::string> EnvironmentWithoutShim();

// The array that exec wants; valid as long as `strings` is.
std::vector<char*> Pointers(std::vector<std::string>& strings);

// Closes every descriptor from `first` on. Async-signal-safe.
void CloseFrom(unsigned first);

}  // namespace lull
