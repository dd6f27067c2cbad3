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

// The job's command, given what of lull's part was not an option. People may leave
// out the `--`; then the first argument that is no option begins the command, and
// a later `--` is the command's own.
std::vector<std::string> JobCommand(const CommandLine& line,
                                    const std::vector<std::string>& remaining);

// Whether it is unclear where the command begins, so that `--` is wanted: without one
// in front, the first word that is no option is no program, though options stand before
// it (whose value it may be) or a `--` follows it.
bool IsAmbiguous(const CommandLine& line, const std::vector<std::string>& remaining);

}  // namespace lull
