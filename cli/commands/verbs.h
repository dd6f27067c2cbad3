// The verbs of `lull`. Every Add... puts its subcommand into the
// app; when the user chose it, its callback runs it and sets *exit_code
// (cli/base/exit_code.h).
#pragma once

#include <CLI/CLI.hpp>

#include "cli/commands/command_line.h"

namespace lull {

void AddRun(CLI::App& app, const CommandLine& line, int* exit_code);
void AddRelay(CLI::App& app, int* exit_code);
// `lull report`, `lull gaps` and all others that show sections of a report.
void AddAnswers(CLI::App& app, int* exit_code);
// Two sides of jobs against each other.
void AddDiff(CLI::App& app, int* exit_code);
// Rules over a job, for continuous integration.
void AddCheck(CLI::App& app, int* exit_code);
// If a wrong command line is one of `lull check`: the files that it names are those of
// an earlier run, and must not stand for this one.
void CheckWasNotUnderstood(int argc, char** argv);
void AddJobs(CLI::App& app, int* exit_code);
// All jobs together.
void AddFleet(CLI::App& app, int* exit_code);
// What people say of jobs: tag, untag, pin, unpin.
void AddMarks(CLI::App& app, int* exit_code);
void AddTop(CLI::App& app, int* exit_code);
void AddImport(CLI::App& app, int* exit_code);
void AddExport(CLI::App& app, int* exit_code);
void AddAttach(CLI::App& app, int* exit_code);
void AddPs(CLI::App& app, int* exit_code);
void AddArm(CLI::App& app, int* exit_code);
void AddDisarm(CLI::App& app, int* exit_code);
void AddDoctor(CLI::App& app, int* exit_code);
void AddSchema(CLI::App& app, int* exit_code);
void AddMcp(CLI::App& app, int* exit_code);
// The pages of jobs, live, for a browser of this host.
void AddWeb(CLI::App& app, int* exit_code);
void AddCompletion(CLI::App& app);
void AddMan(CLI::App& app, int* exit_code);

}  // namespace lull
