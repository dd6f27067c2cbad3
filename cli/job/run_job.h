// `lull run`: one job from its start to its summary.
#pragma once

#include <string>
#include <vector>

#include "cli/client/collector_address.h"
#include "daemon/relay/gpu_plan.h"

namespace lull {

struct RunOptions {
  std::string name;
  CollectorFlags collector;
  bool quiet = false;  // no summary; errors are still said
  double overhead_budget_percent = 1.0;
  relay::GpuPlan gpu;
  std::string step_range;  // name of the NVTX range that is a step; "" = none
  std::vector<std::string> command;
};

// Returns what lull exits with: the job's exit status (128 + n for a signal, 127
// when the command does not exist, 126 when it cannot be executed), or
// kExitNotStarted when lull could not set itself up. Whatever fails in lull once
// the job has started changes neither the job nor its exit status.
int RunJob(const RunOptions& options);

}  // namespace lull
