#include "cli/job/run_job.h"

#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "cli/client/collector_client.h"
#include "cli/client/environment.h"
#include "cli/client/install.h"
#include "cli/client/places.h"
#include "cli/client/private_collector.h"
#include "cli/commands/verbs.h"
#include "cli/job/job_info.h"
#include "cli/job/launchpad.h"
#include "cli/job/pipe.h"
#include "cli/job/supervisor.h"
#include "cli/job/witness.h"
#include "cli/render/summary.h"
#include "daemon/base/status.h"
#include "daemon/relay/keeper.h"

namespace lull {
namespace {

constexpr absl::Duration kReachable = absl::Seconds(5);
constexpr absl::Duration kDelivery = absl::Seconds(30);
// Rows of each kind: as many as the advice may need as its evidence.
constexpr uint32_t kSummaryRows = 100;

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
    ready = StartRelay();
    if (!ready.ok()) {
      launchpad_->Cancel();
      return NotStarted(ready);
    }
    keeper_->JobStarted(launchpad_->pid());
    int error = launchpad_->Go();
    int status =
        supervisor_->Run(launchpad_->pid(), keeper_->fd(), [this] { keeper_->Poll(); });
    supervisor_->EndWith(status);
    if (error != 0) return CannotExecute(error);
    Finish(status);
    return status;
  }

 private:
  absl::Status Plan() {
    LULL_ASSIGN_OR_RETURN(runtime_, PrepareRuntimeDirectory());
    LULL_ASSIGN_OR_RETURN(library_, FindPreloadLibrary());
    LULL_ASSIGN_OR_RETURN(collector_, ResolveCollector(options_.collector, runtime_));
    relay_.job = MakeJobInfo(options_.name, CommandText(options_.command),
                             options_.overhead_budget_percent);
    relay_.socket_path = RelaySocketPath(runtime_, relay_.job.id());
    relay_.spool_directory = absl::StrCat(
        collector_.is_private ? PrivateSpools(runtime_) : RemoteSpools(runtime_), "/",
        relay_.job.id());
    relay_.collector_address = collector_.target;
    relay_.token = collector_.token;
    relay_.tls_ca_file = collector_.tls_ca;
    relay_.overhead_budget_percent = options_.overhead_budget_percent;
    relay_.gpu = options_.gpu;
    return absl::OkStatus();
  }

  absl::Status Fork() {
    LULL_ASSIGN_OR_RETURN(
        Launchpad launchpad,
        Launchpad::Fork(
            options_.command,
            EnvironmentWithShim(library_, relay_.socket_path, options_.step_range)));
    launchpad_ = std::make_unique<Launchpad>(std::move(launchpad));
    LULL_ASSIGN_OR_RETURN(std::unique_ptr<Witness> witness, Witness::Fork());
    LULL_ASSIGN_OR_RETURN(supervisor_, Supervisor::TakeSignals(std::move(witness)));
    return absl::OkStatus();
  }

  absl::Status StartRelay() {
    if (collector_.is_private) {
      LULL_RETURN_IF_ERROR(EnsurePrivateCollector(runtime_));
    } else {
      // A wrong address or token is better known now than after hours.
      LULL_ASSIGN_OR_RETURN(auto client,
                            CollectorClient::Create(collector_, kReachable));
      LULL_RETURN_IF_ERROR(client->GetStatus().status());
    }
    LULL_ASSIGN_OR_RETURN(keeper_, relay::Keeper::Start(relay_));
    return absl::OkStatus();
  }

  int NotStarted(const absl::Status& status) {
    PrintError("run",
               absl::StrCat(status.message(), "\nlull run: the job was not started"));
    return absl::IsInvalidArgument(status) ? kExitUsage : kExitNotStarted;
  }

  int CannotExecute(int error) {
    keeper_->Abandon();
    PrintError("run",
               absl::StrCat(options_.command.front(), ": ",
                            error == ENOENT ? "command not found" : strerror(error)));
    return ExecFailureStatus(error);
  }

  void Finish(int status) {
    keeper_->JobEnded(status);
    // It may have been killed, or the job was quiet for longer than it stays idle.
    if (collector_.is_private) {
      absl::Status there = EnsurePrivateCollector(runtime_);
      if (!there.ok()) PrintError("run", there.message());
    }
    absl::Status delivered = keeper_->WaitUntilDelivered(kDelivery);
    if (!delivered.ok()) {
      PrintError("run",
                 absl::StrCat(delivered.message(), "\nlull run: ", HowToDeliver()));
      return;
    }
    if (!options_.quiet) Summarize();
  }

  std::string HowToDeliver() const {
    if (collector_.is_private) {
      return "the next `lull report` tries to deliver it again";
    }
    return absl::StrCat("deliver it later with: lull relay --deliver ",
                        relay_.spool_directory, " --collector ", collector_.target);
  }

  void Summarize() {
    v1::ReportRequest request;
    request.set_job(relay_.job.id());
    request.set_top(kSummaryRows);
    auto client = CollectorClient::Create(collector_);
    auto reply = client.ok() ? (*client)->GetReport(request)
                             : absl::StatusOr<v1::ReportReply>(client.status());
    if (!reply.ok()) {
      PrintError("run", absl::StrCat("no summary: ", reply.status().message()));
      return;
    }
    bool colour = isatty(STDERR_FILENO) == 1 && getenv("NO_COLOR") == nullptr;
    std::string text = SummaryText(*reply, colour);
    fwrite(text.data(), 1, text.size(), stderr);
  }

  const RunOptions& options_;
  std::string runtime_;
  std::string library_;
  CollectorAddress collector_;
  relay::RelayOptions relay_;
  std::unique_ptr<Launchpad> launchpad_;
  std::unique_ptr<Supervisor> supervisor_;
  std::unique_ptr<relay::Keeper> keeper_;
};

}  // namespace

int RunJob(const RunOptions& options) { return Run(options).Execute(); }

}  // namespace lull
