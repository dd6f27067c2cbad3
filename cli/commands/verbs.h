// The verbs of `lull`. Every Add... puts its subcommand into the
// app; when the user chose it, its callback runs it and sets *exit_code.
//
// Exit codes: 0 done, 1 it could not be done (the reason is on stderr), 2 a wrong
// command line. `run` returns the job's exit status instead, 125 when lull could
// not set itself up and the job was not started.
#pragma once

#include <CLI/CLI.hpp>

#include "absl/strings/string_view.h"
#include "cli/commands/command_line.h"

namespace lull {

inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotStarted = 125;
inline constexpr int kExitNotAttached = 125;

void AddRun(CLI::App& app, const CommandLine& line, int* exit_code);
void AddRelay(CLI::App& app, int* exit_code);
// `lull report`, `lull gaps` and all others that show sections of a report.
void AddAnswers(CLI::App& app, int* exit_code);
void AddJobs(CLI::App& app, int* exit_code);
void AddAttach(CLI::App& app, int* exit_code);
void AddPs(CLI::App& app, int* exit_code);
void AddArm(CLI::App& app, int* exit_code);
void AddDisarm(CLI::App& app, int* exit_code);
void AddDoctor(CLI::App& app, int* exit_code);
void AddCompletion(CLI::App& app);
void AddMan(CLI::App& app, int* exit_code);

// "lull VERB: MESSAGE" on stderr.
void PrintError(absl::string_view verb, absl::string_view message);

}  // namespace lull
