// `lull attach`: processes that run already, watched for a while and left as they were.
#pragma once

#include <sys/types.h>

#include <vector>

#include "absl/time/time.h"
#include "cli/job/session.h"

namespace lull {

struct AttachOptions {
  SessionOptions session;
  std::vector<pid_t> pids;                         // processes, or launchers of them
  absl::Duration time = absl::InfiniteDuration();  // then detach
  bool force = false;  // also where that is a risk (attach::Obstacle::may_be_forced)
};

// Watches until the time is over, all processes have ended, or a signal asks to stop;
// then detaches, delivers and prints the summary. Returns the exit status of lull: 0,
// kExitNotAttached when nothing could be attached to, kExitFailed when something was
// attached to and could not be detached from.
int AttachJob(const AttachOptions& options);

}  // namespace lull
