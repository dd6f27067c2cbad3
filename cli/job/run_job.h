// `lull run`: one job from its start to its summary.
#pragma once

#include <string>
#include <vector>

#include "cli/job/session.h"

namespace lull {

struct RunOptions {
  SessionOptions session;
  bool dormant = false;
  bool must_record = false;      // rather no job than one that is not recorded
  bool collector_given = false;  // on the command line, or something of how to reach it
  std::string step_range;        // name of the NVTX range that is a step; "" = none
  std::vector<std::string> command;
};

// Returns what lull exits with: the job's exit status (128 + n for a signal, 127
// when the command does not exist, 126 when it cannot be executed), or
// kExitNotStarted when no process could be made, or must_record could not be kept, or
// kExitUsage for a wrong collector on the command line.
// Whatever else fails in lull changes neither the job nor its exit status: the job then
// runs without being recorded, or what is recorded waits in the spool.
int RunJob(const RunOptions& options);

}  // namespace lull
