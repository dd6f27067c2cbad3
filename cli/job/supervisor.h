// Stands between the caller and the job until the job ends: passes on signals,
// stops and continues with it, and returns its exit status.
#pragma once

#include <sys/signalfd.h>
#include <sys/types.h>

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "cli/job/witness.h"
#include "daemon/base/unique_fd.h"

namespace lull {

class Supervisor {
 public:
  // Takes over lull's own signals: from here on they wait until Run() deals with
  // them. Call it after the job's process and the witness are forked and before
  // any thread is started, so that all threads inherit the mask. Nothing has changed
  // if it fails.
  static absl::StatusOr<std::unique_ptr<Supervisor>> TakeSignals(
      std::unique_ptr<Witness> witness);

  // Until `job`, a child of ours, ends; returns its exit status, 128 + n when
  // signal n ended it. Meanwhile calls `poll` when `fd` is readable and at least
  // once a second.
  int Run(pid_t job, int fd, absl::FunctionRef<void()> poll);

  // After the job: a signal that ends processes now ends lull at once. Its status is
  // the job's, as the caller waits for that.
  void EndWith(int exit_status);

 private:
  Supervisor() = default;
  void HandleSignals(pid_t job);
  void Forward(pid_t job, const signalfd_siginfo& info);
  void StopWith(int signal);

  std::unique_ptr<Witness> witness_;
  UniqueFd signals_;
};

}  // namespace lull
