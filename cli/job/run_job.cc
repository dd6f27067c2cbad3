#include "cli/job/run_job.h"

#include <string.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/client/environment.h"
#include "cli/client/install.h"
#include "cli/commands/verbs.h"
#include "cli/job/job_info.h"
#include "cli/job/launchpad.h"
#include "cli/job/pipe.h"
#include "cli/job/supervisor.h"
#include "cli/job/witness.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

class Run {
 public:
  explicit Run(const RunOptions& options) : options_(options) {}

  int Execute() {
    // In this order: all that can fail without a process; the processes, while we
    // are as we were started; then what opens descriptors and makes threads.
    absl::Status ready = Plan();
    if (ready.ok()) ready = Fork();
    if (!ready.ok()) return NotStarted(ready);
    FillStandardDescriptors();
    ready = session_->StartRelay();
    if (!ready.ok()) {
      launchpad_->Cancel();
      return NotStarted(ready);
    }
    relay::Keeper& keeper = session_->keeper();
    keeper.JobStarted(launchpad_->pid());
    int error = launchpad_->Go();
    int status =
        supervisor_->Run(launchpad_->pid(), keeper.fd(), [&keeper] { keeper.Poll(); });
    supervisor_->EndWith(status);
    if (error != 0) return CannotExecute(error);
    session_->Finish(status);
    return status;
  }

 private:
  absl::Status Plan() {
    LULL_ASSIGN_OR_RETURN(library_, FindPreloadLibrary());
    LULL_ASSIGN_OR_RETURN(session_, Session::Plan("run", options_.session,
                                                  CommandText(options_.command)));
    session_->relay().dormant = options_.dormant;
    return absl::OkStatus();
  }

  absl::Status Fork() {
    LULL_ASSIGN_OR_RETURN(
        Launchpad launchpad,
        Launchpad::Fork(options_.command,
                        EnvironmentWithShim(library_, session_->relay().socket_path,
                                            options_.step_range)));
    launchpad_ = std::make_unique<Launchpad>(std::move(launchpad));
    LULL_ASSIGN_OR_RETURN(std::unique_ptr<Witness> witness, Witness::Fork());
    LULL_ASSIGN_OR_RETURN(supervisor_, Supervisor::TakeSignals(std::move(witness)));
    return absl::OkStatus();
  }

  int NotStarted(const absl::Status& status) {
    PrintError("run",
               absl::StrCat(status.message(), "\nlull run: the job was not started"));
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitNotStarted;
  }

  int CannotExecute(int error) {
    session_->keeper().Abandon();
    PrintError("run",
               absl::StrCat(options_.command.front(), ": ",
                            error == ENOENT ? "command not found" : strerror(error)));
    return ExecFailureStatus(error);
  }

  const RunOptions& options_;
  std::string library_;
  std::unique_ptr<Session> session_;
  std::unique_ptr<Launchpad> launchpad_;
  std::unique_ptr<Supervisor> supervisor_;
};

}  // namespace

int RunJob(const RunOptions& options) { return Run(options).Execute(); }

}  // namespace lull
