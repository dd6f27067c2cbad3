#include "cli/commands/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace lull {
namespace {

// As exec would look for it, but whether it may be executed is exec's to say.
bool IsProgram(const std::string& word) {
  if (word.find('/') != std::string::npos) return access(word.c_str(), F_OK) == 0;
  const char* path = getenv("PATH");
  for (absl::string_view folder :
       absl::StrSplit(path != nullptr ? path : "/bin:/usr/bin", ':')) {
    const std::string file = folder.empty() ? word : absl::StrCat(folder, "/", word);
    if (access(file.c_str(), F_OK) == 0) return true;
  }
  return false;
}

}  // namespace

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

bool IsAmbiguous(const CommandLine& line, const std::vector<std::string>& remaining) {
  if (remaining.empty() || IsProgram(remaining.front())) return false;
  bool options_before = line.own.size() > remaining.size() + 1;  // "run" is the one
  return options_before || line.separator;
}

}  // namespace lull
