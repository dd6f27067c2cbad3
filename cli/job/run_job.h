// `lull run`: one job from its start to its summary.
#pragma once

#include <string>
#include <vector>

#include "cli/job/session.h"

namespace lull {

struct RunOptions {
  SessionOptions session;
  bool dormant = false;
  std::string step_range;  // name of the NVTX range that is a step; "" = none
  std::vector<std::string> command;
};

// Returns what lull exits with: the job's exit status (128 + n for a signal, 127
// when the command does not exist, 126 when it cannot be executed), or
// kExitNotStarted when lull could not set itself up. Whatever fails in lull once
// the job has started changes neither the job nor its exit status.
int RunJob(const RunOptions& options);

}  // namespace lull
