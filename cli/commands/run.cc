// `lull run`: a job with lull in front of it.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/commands/gpu_options.h"
#include "cli/commands/session_options.h"
#include "cli/commands/verbs.h"
#include "cli/commands/wrong_command_line.h"
#include "cli/job/run_job.h"

namespace lull {
namespace {

constexpr size_t kLongestStepRange = 127;  // preload/entry/settings.h

struct RunFlags {
  RunOptions options;
  GpuFlags gpu;
};

int Execute(RunFlags& flags, const CLI::App& verb, const CommandLine& line) {
  RunOptions& options = flags.options;
  std::vector<std::string> remaining = verb.remaining();
  if (!remaining.empty() && absl::StartsWith(remaining.front(), "-")) {
    std::string meant = NearestOption(verb, remaining.front());
    PrintError("run", absl::StrCat("unknown option ", remaining.front(), meant,
                                   meant.empty() ? "; see `lull run --help`, and" : "",
                                   meant.empty() ? " put `--` before the job" : ""));
    return kExitUsage;
  }
  if (IsAmbiguous(line, remaining)) {
    PrintError("run",
               absl::StrCat("'", remaining.front(),
                            "' is no program, so where the job begins is unclear; "
                            "write: lull run [OPTIONS] -- COMMAND..."));
    return kExitUsage;
  }
  options.command = JobCommand(line, remaining);
  if (options.command.empty() || options.command.front().empty()) {
    return Fail("run", "no command to run; write: lull run -- python train.py",
                kExitUsage);
  }
  auto gpu = MakeGpuPlan(flags.gpu);
  if (!gpu.ok()) return Fail("run", gpu.status().message(), kExitUsage);
  options.session.gpu = *gpu;
  for (const char* name :
       {"--collector", "--token-file", "--tls-ca", "--insecure-plain-tcp"}) {
    options.collector_given |= verb.get_option(name)->count() > 0;
  }
  return RunJob(options);
}

}  // namespace

void AddRun(CLI::App& app, const CommandLine& line, int* exit_code) {
  auto flags = std::make_shared<RunFlags>();
  RunOptions* options = &flags->options;
  CLI::App* verb = app.add_subcommand(
      "run", "Run a job and say where it blocked: lull run [OPTIONS] -- COMMAND...");
  verb->footer(
      "The job's output, input, signals and terminal are its own; the summary goes to "
      "stderr.\nThe exit status is the job's: 128 + n when signal n ended it, 127 when "
      "the command\ndoes not exist, 126 when it cannot be executed, 2 for a wrong "
      "command line. Where lull\ncannot set itself up it says why, and the job runs "
      "without being recorded; with\n--must-record it is not started then, and the "
      "status is 125.\n\n"
      "The first word that is no option of lull's begins the command; `--` before it "
      "is\nneeded where that is not clear, and never wrong.\n\n"
      "Examples:\n  lull run -- python train.py --lr 0.1\n"
      "  lull run --name resnet -- torchrun --nproc-per-node 8 train.py\n"
      "  lull run --schedule wait=50,warmup=1,active=3 -- python train.py\n"
      "  lull run --dormant --name resnet -- python train.py   (then: lull arm "
      "resnet)");
  AddSessionOptions(verb, &options->session);
  verb->add_flag("--dormant", options->dormant,
                 "start asleep: record nothing, at no cost, until `lull arm`");
  verb->add_flag("--must-record", options->must_record,
                 "do not start the job where it cannot be recorded");
  AddGpuOptions(verb, &flags->gpu);
  verb->add_option("--step-range", options->step_range,
                   "the NVTX range whose end is the end of a training step (default: "
                   "the steps of PyTorch's optimizers)")
      ->check(CLI::Validator(
          [](std::string& name) {
            return name.empty() || name.size() > kLongestStepRange
                       ? absl::StrCat("a name of 1 to ", kLongestStepRange, " bytes")
                       : std::string();
          },
          ""))
      ->type_name("NAME")
      ->configurable();
  verb->prefix_command();
  verb->callback(
      [flags, verb, line, exit_code] { *exit_code = Execute(*flags, *verb, line); });
}

}  // namespace lull
