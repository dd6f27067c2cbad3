#include "cli/commands/command_line.h"

#include <algorithm>

namespace lull {

CommandLine SplitCommandLine(int argc, char** argv) {
  CommandLine line;
  std::vector<std::string> all(argv + std::min(argc, 1), argv + argc);
  auto end = all.end();
  if (!all.empty() && all.front() == "run")
    end = std::find(all.begin(), all.end(), "--");
  line.separator = end != all.end();
  if (line.separator) line.job.assign(end + 1, all.end());
  line.own.assign(all.begin(), end);
  std::reverse(line.own.begin(), line.own.end());
  return line;
}

std::vector<std::string> JobCommand(const CommandLine& line,
                                    const std::vector<std::string>& remaining) {
  if (remaining.empty()) return line.job;
  std::vector<std::string> command = remaining;
  if (line.separator) command.push_back("--");
  command.insert(command.end(), line.job.begin(), line.job.end());
  return command;
}

}  // namespace lull
