// `lull attach`: a job that runs already.
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/gpu_options.h"
#include "cli/commands/numbers.h"
#include "cli/commands/session_options.h"
#include "cli/commands/verbs.h"
#include "cli/job/attach_job.h"

namespace lull {
namespace {

struct AttachFlags {
  AttachOptions options;
  GpuFlags gpu;
  std::string time;
};

int Execute(AttachFlags& flags) {
  if (!flags.time.empty() && (!absl::ParseDuration(flags.time, &flags.options.time) ||
                              flags.options.time <= absl::ZeroDuration())) {
    PrintError("attach",
               absl::StrCat("--for ", flags.time, ": a time such as 60s or 5m"));
    return kExitUsage;
  }
  auto gpu = MakeGpuPlan(flags.gpu);
  if (!gpu.ok()) return Fail("attach", gpu.status().message(), kExitUsage);
  flags.options.session.gpu = *gpu;
  return AttachJob(flags.options);
}

}  // namespace

void AddAttach(CLI::App& app, int* exit_code) {
  auto flags = std::make_shared<AttachFlags>();
  AttachOptions* options = &flags->options;
  CLI::App* verb = app.add_subcommand(
      "attach", "Watch a job that runs already: lull attach [OPTIONS] PID...");
  verb->footer(
      "PID is a training process, or a launcher (torchrun, mpirun, a shell): then the\n"
      "processes below it that do GPU work, or that are ranks, are meant. `lull ps` "
      "lists them.\n\nThe job is stopped for a few milliseconds, one thread at a time, "
      "and runs on as before\nonce lull has let go: when the time is over or at "
      "Ctrl-C. It needs the right to trace the\nprocess (ptrace); where that is not to "
      "be had, start the job with `lull run --dormant`.\n\nWindows of GPU tracing leave "
      "CUPTI in the process: launches may stay some microseconds\ndearer until it ends. "
      "--gpu host does without.\n\nThe exit status is 0, 125 "
      "when nothing could be attached to, 1 when a process could not\nbe detached "
      "from, 2 for a wrong command line.\n\nExamples:\n"
      "  lull attach 4312 --for 60s\n"
      "  lull attach --gpu continuous --for 10s 4312\n"
      "  lull attach $(pgrep -f torchrun) --for 2m --name nightly");
  verb->add_option("PID", options->pids, "processes, or launchers of them")
      ->required()
      ->check(Pid())
      ->type_name("");
  verb->add_option("--for", flags->time, "then detach (default: at Ctrl-C)")
      ->type_name("TIME");
  verb->add_flag(
      "--force", options->force,
      "attach although a seccomp filter that cannot be read may kill for it");
  AddSessionOptions(verb, &options->session);
  AddGpuOptions(verb, &flags->gpu);
  verb->callback([flags, exit_code] { *exit_code = Execute(*flags); });
}

}  // namespace lull
