// `lull ps`: the processes that `lull attach` could watch, and what keeps it from it.
#include "cli/render/ps.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/terminal.h"
#include "cli/commands/numbers.h"
#include "cli/commands/verbs.h"
#include "daemon/attach/examine/examination.h"
#include "daemon/attach/examine/process_tree.h"
#include "daemon/attach/inject/filters.h"

namespace lull {
namespace {

using attach::Examination;
using attach::Role;

struct PsOptions {
  pid_t pid = 0;  // 0 = all
  bool all = false;
  bool json = false;
};

bool IsHelp(const Examination& seen) {
  return seen.role == Role::kHelper || seen.role == Role::kForkChild;
}

int List(const PsOptions& options) {
  std::vector<Examination> processes;
  size_t hidden = 0;
  for (Examination& seen : attach::ExamineAll()) {
    if (!attach::IsCandidate(seen)) continue;
    if (IsHelp(seen) && !options.all) {
      ++hidden;
    } else {
      processes.push_back(std::move(seen));
    }
  }
  PrintAnswer(options.json,
              options.json ? JsonText(PsJson(processes))
                           : PsText(processes, hidden, TerminalColumns(STDOUT_FILENO)));
  return 0;
}

int Explain(const PsOptions& options) {
  Examination seen = attach::Examine(
      options.pid, {.probe = true, .filters_readable = inject::MayReadFilters()});
  std::vector<pid_t> workers = attach::FindWorkers(options.pid);
  if (!seen.process.exists && !options.json) {
    PrintError("ps",
               absl::StrCat(seen.obstacles[0].what, " ", seen.obstacles[0].advice));
    return kExitFailed;
  }
  PrintAnswer(options.json, options.json ? JsonText(ProcessJson(seen, workers))
                                         : ProcessText(seen, workers));
  return seen.CanBeAttached() ? 0 : kExitFailed;
}

}  // namespace

void AddPs(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<PsOptions>();
  CLI::App* verb = app.add_subcommand(
      "ps", "The processes that could be attached to: Python, CUDA, ranks of a job");
  verb->footer(
      "With a PID: all that is known of that process, every reason why it cannot be "
      "attached\nto, and what to do; exit code 1 when there is one. Whether the kernel "
      "allows it is then\nfound out by tracing the process for an instant; it is not "
      "stopped.\n\nExamples:\n  lull ps\n  lull ps --all --json\n  lull ps 4312");
  verb->add_option("PID", options->pid, "explain this process")->check(Pid());
  verb->add_flag("--all", options->all, "DataLoader workers and helpers too");
  verb->add_flag("--json", options->json, "print JSON instead of a table");
  AddTerminalOptions(verb, /*answers=*/true);
  verb->callback([options, exit_code] {
    *exit_code = options->pid != 0 ? Explain(*options) : List(*options);
  });
}

}  // namespace lull
