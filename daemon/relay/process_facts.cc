#include "daemon/relay/process_facts.h"

#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include <string>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "daemon/base/text.h"
#include "daemon/base/unique_fd.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxEnvironment = 1u << 20;

std::string ReadProc(pid_t pid, const char* name, size_t limit) {
  UniqueFd file(
      open(absl::StrCat("/proc/", pid, "/", name).c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[16384];
  ssize_t got;
  while (file && text.size() < limit &&
         (got = read(file.get(), buffer, sizeof(buffer))) > 0) {
    text.append(buffer, static_cast<size_t>(got));
  }
  return text;
}

// Field 4 of /proc/PID/stat; field 2, the name, may hold blanks and brackets.
uint32_t ParentIn(const std::string& stat) {
  size_t bracket = stat.rfind(')');
  if (bracket == std::string::npos) return 0;
  std::vector<absl::string_view> fields = absl::StrSplit(
      absl::string_view(stat).substr(bracket + 1), ' ', absl::SkipEmpty());
  uint32_t parent = 0;
  return fields.size() > 1 && absl::SimpleAtoi(fields[1], &parent) ? parent : 0;
}

int32_t RankIn(const std::string& environment, absl::string_view variable) {
  for (absl::string_view entry : absl::StrSplit(environment, '\0')) {
    int32_t rank = -1;
    if (absl::ConsumePrefix(&entry, variable) && absl::SimpleAtoi(entry, &rank)) {
      return rank < 0 ? -1 : rank;
    }
  }
  return -1;
}

}  // namespace

uint32_t ParentOf(pid_t pid) { return ParentIn(ReadProc(pid, "stat", 4096)); }

lull::v1::ProcessInfo ReadProcessFacts(pid_t pid) {
  lull::v1::ProcessInfo info;
  info.set_pid(static_cast<uint32_t>(pid));
  info.set_parent_pid(ParentOf(pid));

  std::string command = ReadProc(pid, "cmdline", kMaxWireString + 1);
  while (!command.empty() && command.back() == '\0') command.pop_back();
  for (char& c : command) {
    if (c == '\0') c = ' ';
  }
  info.set_command(CleanText(command));

  char executable[PATH_MAX];
  ssize_t length = readlink(absl::StrCat("/proc/", pid, "/exe").c_str(), executable,
                            sizeof(executable));
  if (length > 0) {
    info.set_executable(
        CleanText(std::string_view(executable, static_cast<size_t>(length))));
  }
  std::string environment = ReadProc(pid, "environ", kMaxEnvironment);
  info.set_rank(RankIn(environment, "RANK="));
  info.set_local_rank(RankIn(environment, "LOCAL_RANK="));
  return info;
}

}  // namespace lull::relay
