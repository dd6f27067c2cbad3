// Runs a small command and reads what it says.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace lull {

struct CommandResult {
  int exit_status = 0;  // 128 + n for a signal
  std::string output;   // stdout, the first 64 KiB
};

// stdin and stderr are /dev/null. DEADLINE_EXCEEDED: it was killed after `timeout`.
absl::StatusOr<CommandResult> RunCommand(std::vector<std::string> argv,
                                         std::vector<std::string> environment,
                                         absl::Duration timeout);

// The programs in PATH with one of these names, in that order, each file once.
std::vector<std::string> FindPrograms(const std::vector<std::string>& names);

}  // namespace lull
