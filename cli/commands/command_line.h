// Splits a command line between lull and the job.
#pragma once

#include <string>
#include <vector>

namespace lull {

struct CommandLine {
  std::vector<std::string> own;  // lull's part, last argument first: for App::parse
  bool separator = false;        // there was a `--` (of `lull run` alone)
  std::vector<std::string> job;  // what followed it, never looked at
};

CommandLine SplitCommandLine(int argc, char** argv);

// The job's command. `remaining`: arguments of lull's part that are no options. People
// may leave out the `--`; then the first argument that is no option begins the command,
// and a later `--` belongs to the command.
std::vector<std::string> JobCommand(const CommandLine& line,
                                    const std::vector<std::string>& remaining);

// Whether it is unclear where the command begins, so that the user must write `--`:
// there is none in front, the first word that is no option is not a program, and
// options stand before it (it may be the value of one) or a `--` follows it.
bool IsAmbiguous(const CommandLine& line, const std::vector<std::string>& remaining);

}  // namespace lull
