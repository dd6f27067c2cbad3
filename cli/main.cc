// `lull`: wires the verbs together.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstring>

#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/pipe.h"
#include "cli/base/terminal.h"
#include "cli/commands/command_line.h"
#include "cli/commands/configuration.h"
#include "cli/commands/verbs.h"
#include "cli/commands/wrong_command_line.h"
#include "cli/render/lines.h"
#include "daemon/base/own_libc.h"
#include "daemon/base/version.h"
#include "daemon/relay/process/keeper.h"
#include "daemon/relay/process/worker_main.h"
#include "daemon/relay/symbols/symbol_reader_main.h"

int main(int argc, char** argv) {
  lull::KeepToOwnLibc();
  // The worker's descriptors are where the keeper put them; nothing may come first that
  // opens any.
  if (argc == 2 && strcmp(argv[1], lull::relay::kWorkerVerb) == 0) {
    return lull::relay::RelayWorkerMain();
  }
  if (argc > 1 && strcmp(argv[1], lull::relay::kSymbolReaderVerb) == 0) {
    return lull::relay::SymbolReaderMain(argc, argv);
  }
  // Under `run` they stay as they are until the job has them.
  if (argc < 2 || strcmp(argv[1], "run") != 0) lull::FillStandardDescriptors();
  CLI::App app("Finds out why the GPU sits idle in an unmodified training job.",
               "lull");
  app.set_version_flag("--version", lull::VersionText("lull"));
  app.require_subcommand(1);
  app.option_defaults()->configurable(false);  // lull.toml sets those that say so
  app.footer(
      "Example:\n  lull run -- python train.py\n  lull syncs --by stack\n\n"
      "`lull VERB --help` explains a verb. Exit codes: 0 done, 1 it could not be "
      "done,\n2 a wrong command line; `lull run` returns the job's own; `lull check` 0 "
      "passed,\n"
      "1 failed, 3 it cannot be judged.");
  lull::CommandLine line = lull::SplitCommandLine(argc, argv);
  int exit_code = 0;
  lull::AddRun(app, line, &exit_code);
  lull::AddAttach(app, &exit_code);
  lull::AddAnswers(app, &exit_code);
  lull::AddDiff(app, &exit_code);
  lull::AddCheck(app, &exit_code);
  lull::AddJobs(app, &exit_code);
  lull::AddFleet(app, &exit_code);
  lull::AddMarks(app, &exit_code);
  lull::AddTop(app, &exit_code);
  lull::AddImport(app, &exit_code);
  lull::AddExport(app, &exit_code);
  lull::AddPs(app, &exit_code);
  lull::AddArm(app, &exit_code);
  lull::AddDisarm(app, &exit_code);
  lull::AddDoctor(app, &exit_code);
  lull::AddSchema(app, &exit_code);
  lull::AddMcp(app, &exit_code);
  lull::AddWeb(app, &exit_code);
  lull::AddRelay(app, &exit_code);
  lull::AddCompletion(app);
  lull::AddMan(app, &exit_code);
  lull::SetTerminalColumns(lull::TerminalColumns(STDOUT_FILENO));
  if (lull::ComplainsOfVerb(app, argc, argv)) return lull::kExitUsage;
  app.parse_complete_callback([&app, argv] {
    absl::Status configured = lull::ApplyConfiguration(app);
    if (configured.ok()) return;
    lull::PrintError(argv[1], configured.message());
    throw CLI::RuntimeError(lull::kExitUsage);
  });
  try {
    app.parse(line.own);
  } catch (const CLI::ParseError& error) {
    exit_code = lull::ExitOf(app, error);
    if (exit_code != 0) lull::CheckWasNotUnderstood(argc, argv);
  }
  if (lull::FlushOutput(argv[1])) return exit_code;
  return exit_code == 0 ? lull::kExitFailed : exit_code;
}
