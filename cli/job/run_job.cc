#include "cli/job/run_job.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/base/environment.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/pipe.h"
#include "cli/client/install.h"
#include "cli/job/first_process.h"
#include "cli/job/job_info.h"
#include "cli/job/launchpad.h"
#include "cli/job/supervisor.h"
#include "cli/job/witness.h"
#include "daemon/base/descriptor_limit.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

class JobRun {
 public:
  explicit JobRun(const RunOptions& options) : options_(options) {}

  int Execute() {
    LeaveFirstProcessBehind();
    // In this order: all that can fail without a process; the processes, while we
    // are as we were started; then what opens descriptors and makes threads.
    absl::Status ready = Plan();
    if (MustStop(ready)) return NotStarted(ready);
    absl::Status forked = Fork(/*recorded=*/ready.ok());
    if (!forked.ok()) return MustStop(forked) ? NotStarted(forked) : BecomeJob(forked);
    FillStandardDescriptors();
    RaiseDescriptorLimit();
    if (ready.ok()) {
      // Without a collector the relay keeps what it reads.
      absl::Status reached = session_->ReachCollector();
      ready = MustStop(reached) ? reached : session_->StartRelay();
      if (MustStop(ready)) {
        launchpad_->Cancel();
        return NotStarted(ready);
      }
      if (ready.ok() && !reached.ok()) WarnOfCollector(reached);
    }
    return ready.ok() ? RunRecorded() : RunAsItIs(ready);
  }

 private:
  // A wrong command line is nobody's job. Everything else is lull's own trouble: also
  // what the environment or a file says of the collector.
  bool IsOfCommandLine(const absl::Status& status) const {
    return absl::IsInvalidArgument(status) && options_.collector_given;
  }
  bool MustStop(const absl::Status& status) const {
    return IsOfCommandLine(status) || (options_.must_record && !status.ok());
  }

  int RunRecorded() {
    relay::Keeper& keeper = session_->keeper();
    keeper.JobStarted(launchpad_->pid());
    launchpad_->Go(/*recorded=*/true);
    int status =
        supervisor_->Run(launchpad_->pid(), keeper.fd(), [&keeper] { keeper.Poll(); });
    supervisor_->EndWith(status);
    if (int error = launchpad_->ExecError(); error != 0) {
      keeper.Abandon();
      return CannotExecute(error);
    }
    session_->Finish(status);
    return status;
  }

  int RunAsItIs(const absl::Status& why) {
    TellUnrecorded(why);
    launchpad_->Go(/*recorded=*/false);
    int status = supervisor_->Run(launchpad_->pid(), -1, [] {});
    supervisor_->EndWith(status);
    int error = launchpad_->ExecError();
    return error != 0 ? CannotExecute(error) : status;
  }

  // No process or descriptor can be had beside the job's own (ulimit -u, -n).
  int BecomeJob(const absl::Status& why) {
    TellUnrecorded(why);
    if (launchpad_ != nullptr) launchpad_->Cancel();
    std::vector<std::string> argv = options_.command;
    std::vector<char*> arguments = Pointers(argv);
    execvp(arguments[0], arguments.data());
    return CannotExecute(errno);
  }

  void TellUnrecorded(const absl::Status& why) {
    PrintError("run", absl::StrCat(why.message(),
                                   "\nlull run: the job runs without being recorded"));
  }

  absl::Status Plan() {
    LULL_ASSIGN_OR_RETURN(library_, FindPreloadLibrary());
    LULL_ASSIGN_OR_RETURN(session_, Session::Plan("run", options_.session,
                                                  CommandText(options_.command)));
    session_->relay().dormant = options_.dormant;
    return absl::OkStatus();
  }

  absl::Status Fork(bool recorded) {
    std::vector<std::string> environment;
    if (recorded) {
      environment = EnvironmentWithShim(library_, session_->relay().socket_path,
                                        options_.step_range,
                                        !options_.session.settings.no_host_samples());
    }
    LULL_ASSIGN_OR_RETURN(Launchpad launchpad,
                          Launchpad::Fork(options_.command, std::move(environment)));
    launchpad_ = std::make_unique<Launchpad>(std::move(launchpad));
    LULL_ASSIGN_OR_RETURN(std::unique_ptr<Witness> witness, Witness::Fork());
    LULL_ASSIGN_OR_RETURN(supervisor_, Supervisor::TakeSignals(std::move(witness)));
    return absl::OkStatus();
  }

  int NotStarted(const absl::Status& status) {
    PrintError("run",
               absl::StrCat(status.message(), "\nlull run: the job was not started"));
    return IsOfCommandLine(status) ? kExitUsage : kExitNotStarted;
  }

  void WarnOfCollector(const absl::Status& why) {
    PrintError("run",
               absl::StrCat(why.message(),
                            "\nlull run: the job runs; what is recorded waits in ",
                            session_->relay().spool_directory));
  }

  int CannotExecute(int error) {
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

int RunJob(const RunOptions& options) { return JobRun(options).Execute(); }

}  // namespace lull
