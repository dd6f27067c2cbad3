// `lull relay`: the relay of a job that was not started by lull, and the delivery
// of what an earlier relay had to leave behind.
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/client/places.h"
#include "cli/client/private_collector.h"
#include "cli/commands/collector_options.h"
#include "cli/commands/gpu_options.h"
#include "cli/commands/session_options.h"
#include "cli/commands/verbs.h"
#include "cli/job/job_info.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/deliver/deliver.h"
#include "daemon/relay/process/keeper.h"

namespace lull {
namespace {

// A launcher may take its time until its first process does GPU work.
constexpr absl::Duration kFirstTarget = absl::Seconds(60);
// Between two processes of one script.
constexpr absl::Duration kNoTarget = absl::Seconds(5);
constexpr absl::Duration kDelivery = absl::Seconds(60);

struct RelayVerbOptions {
  std::string socket;
  std::string name;
  std::vector<std::string> tags;
  std::string deliver;
  CollectorFlags collector;
  GpuFlags gpu;
  v1::JobSettings settings;
};

absl::Status Deliver(const RelayVerbOptions& options) {
  LULL_ASSIGN_OR_RETURN(std::string runtime, PrepareRuntimeDirectory());
  LULL_ASSIGN_OR_RETURN(ChosenCollector collector,
                        ResolveCollector(options.collector, runtime));
  if (collector.is_private) LULL_RETURN_IF_ERROR(EnsurePrivateCollector(runtime));
  relay::DeliverOptions deliver;
  LULL_ASSIGN_OR_RETURN(deliver.collector, ForWriting(collector));
  return relay::DeliverSpool(options.deliver, deliver);
}

// The shim says hello on RUNTIME/auto-SESSION.sock; 0 when this is another name.
int SessionOf(absl::string_view socket) {
  size_t slash = socket.rfind('/');
  if (slash != absl::string_view::npos) socket.remove_prefix(slash + 1);
  int session = 0;
  bool automatic = absl::ConsumePrefix(&socket, "auto-") &&
                   absl::ConsumeSuffix(&socket, ".sock") &&
                   absl::SimpleAtoi(socket, &session);
  return automatic ? session : 0;
}

absl::StatusOr<UniqueFd> TakeStopSignals() {
  sigset_t stop;
  sigemptyset(&stop);
  for (int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stop, signal);
  sigprocmask(SIG_BLOCK, &stop, nullptr);
  signal(SIGPIPE, SIG_IGN);
  signal(SIGCHLD, SIG_DFL);
  UniqueFd fd(signalfd(-1, &stop, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd) return ErrnoStatus(errno, "cannot take signals");
  return fd;
}

// Until told to stop, or until no process has been left for a while.
void ServeTargets(relay::Keeper& keeper, int stop) {
  absl::Time idle_since = SteadyNow();
  for (;;) {
    pollfd wait[] = {{stop, POLLIN, 0}, {keeper.fd(), POLLIN, 0}};
    poll(wait, 2, 1000);
    if ((wait[0].revents & POLLIN) != 0) return;
    keeper.Poll();
    relay::RelayStatus status = keeper.status();
    if (status.live_targets > 0) idle_since = SteadyNow();
    if (SteadyNow() - idle_since > (status.targets == 0 ? kFirstTarget : kNoTarget))
      return;
  }
}

absl::Status Relay(const RelayVerbOptions& options) {
  LULL_ASSIGN_OR_RETURN(relay::GpuPlan gpu, MakeGpuPlan(options.gpu));
  std::string command = CommandOfPreloaded(SessionOf(options.socket));
  LULL_ASSIGN_OR_RETURN(std::string runtime, PrepareRuntimeDirectory());
  LULL_ASSIGN_OR_RETURN(ChosenCollector collector,
                        ResolveCollector(options.collector, runtime));
  LULL_ASSIGN_OR_RETURN(UniqueFd stop, TakeStopSignals());
  relay::RelayOptions relay;
  relay.job = MakeJobInfo(options.name, command, options.settings);
  relay.job.mutable_tags()->Add(options.tags.begin(), options.tags.end());
  relay.gpu = gpu;
  relay.socket_path = options.socket;
  relay.spool_directory = SpoolDirectory(runtime, collector.is_private, relay.job.id());
  LULL_ASSIGN_OR_RETURN(relay.collector, ForWriting(collector));
  // The socket first: the target waits for it.
  LULL_ASSIGN_OR_RETURN(std::unique_ptr<relay::Keeper> keeper,
                        relay::Keeper::Start(relay));
  if (collector.is_private) {
    absl::Status there = EnsurePrivateCollector(runtime);
    if (!there.ok()) PrintError("relay", there.message());
  }
  ServeTargets(*keeper, stop.get());
  keeper->JobEnded(-1);
  if (collector.is_private) LULL_RETURN_IF_ERROR(EnsurePrivateCollector(runtime));
  return keeper->WaitUntilDelivered(kDelivery);
}

int Execute(const RelayVerbOptions& options) {
  if (options.socket.empty() == options.deliver.empty()) {
    return Fail("relay",
                "give one of --socket PATH and --deliver DIR; see `lull relay --help`",
                kExitUsage);
  }
  absl::Status done = options.deliver.empty() ? Relay(options) : Deliver(options);
  if (done.ok()) return 0;
  return Fail("relay", done);
}

}  // namespace

void AddRelay(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<RelayVerbOptions>();
  CLI::App* verb = app.add_subcommand(
      "relay", "Pass on events of a job that was started with LD_PRELOAD alone");
  verb->footer(
      "liblull.so starts this by itself when it is preloaded without `lull run`. It "
      "ends once\nno process of the job is left.\n\nExamples:\n"
      "  lull relay --socket /tmp/lull-1000/relay.sock\n"
      "  lull relay --deliver ~/.local/share/lull/spool-remote/JOB --collector "
      "host:4317");
  verb->add_option("--socket", options->socket,
                   "where the processes of the job say hello")
      ->type_name("PATH");
  verb->add_option("--name", options->name, "a name for the job")->type_name("NAME");
  AddTagOption(verb, &options->tags);
  verb->add_option(
          "--deliver", options->deliver,
          "send the spool that an earlier relay could not deliver, and remove it")
      ->type_name("DIR");
  AddGpuOptions(verb, &options->gpu);
  AddSourceOption(verb, &options->settings);
  AddCollectorOptions(verb, &options->collector);
  verb->callback([options, exit_code] { *exit_code = Execute(*options); });
}

}  // namespace lull
