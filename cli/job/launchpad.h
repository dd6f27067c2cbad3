// The job's own process, forked before lull has changed or opened anything.
//
// It waits on a pipe until lull has set itself up, then execs. So signal mask,
// dispositions, descriptors, limits and terminal are those that lull was started
// with, by construction and not by restoring them. If lull dies, the pipe closes and
// the process goes without having run the job. Only fork() itself takes something from
// it, the signal that is sent when the parent dies. That is set again: it comes when
// lull dies.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"

namespace lull {

class Launchpad {
 public:
  // Call it while there is one thread. argv[0] is looked up in PATH, as a shell
  // does.
  static absl::StatusOr<Launchpad> Fork(std::vector<std::string> argv,
                                        std::vector<std::string> environment);

  pid_t pid() const { return pid_; }

  // Lets the job start: with the environment that was given to Fork(), or with lull's
  // own if it is not to be recorded. Does not wait for it: a signal may have ended or
  // stopped it before.
  void Go(bool recorded);

  // Once the job has ended: 0, or the errno with which exec failed.
  int ExecError();

  // Gives up: the process ends without running the job, and is reaped.
  void Cancel();

 private:
  Launchpad() = default;

  pid_t pid_ = -1;
  UniqueFd go_;      // one byte: exec
  UniqueFd failed_;  // an errno, or end of file once the exec worked
};

// Exit status for an exec that failed, as shells have it: 127 not found, else 126.
int ExecFailureStatus(int error);

}  // namespace lull
