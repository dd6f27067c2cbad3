#include "cli/job/job_info.h"

#include <pwd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/client/install.h"
#include "daemon/base/clock.h"
#include "daemon/base/text.h"

namespace lull {
namespace {

std::string RandomId() {
  std::array<char, 16> bytes = {};
  size_t filled = 0;
  while (filled < bytes.size()) {
    ssize_t got = getrandom(bytes.data() + filled, bytes.size() - filled, 0);
    if (got > 0) filled += static_cast<size_t>(got);
  }
  return absl::BytesToHexString(std::string(bytes.data(), bytes.size()));
}

std::string HostName() {
  std::array<char, 256> name = {};
  if (gethostname(name.data(), name.size() - 1) != 0) return "";
  return CleanText(name.data());
}

std::string UserName() {
  passwd* entry = getpwuid(geteuid());
  return entry != nullptr ? CleanText(entry->pw_name) : absl::StrCat(geteuid());
}

std::string Quoted(const std::string& argument) {
  constexpr char kPlain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  if (!argument.empty() && argument.find_first_not_of(kPlain) == std::string::npos) {
    return argument;
  }
  return absl::StrCat("'", absl::StrReplaceAll(argument, {{"'", "'\\''"}}), "'");
}

std::string ReadProc(int pid, const char* file) {
  std::ifstream stream(absl::StrCat("/proc/", pid, "/", file));
  return std::string(std::istreambuf_iterator<char>(stream), {});
}

std::string CommandTextOf(int pid) {
  std::string text = ReadProc(pid, "cmdline");
  if (!text.empty() && text.back() == '\0') text.pop_back();
  if (text.empty()) return "";
  return CommandText(absl::StrSplit(text, '\0'));
}

bool HasShim(int pid) {
  return absl::StrContains(ReadProc(pid, "maps"), "/liblull.so");
}

struct StatFields {
  int session = -1;
  uint64_t start = 0;  // clock ticks since the machine's start
};

StatFields ReadStat(int pid) {
  std::string text = ReadProc(pid, "stat");
  // The name may hold anything; the fields begin after the last parenthesis, with
  // the third one.
  size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos) return {};
  std::vector<std::string> fields = absl::StrSplit(text.substr(name_end + 2), ' ');
  StatFields stat;
  constexpr size_t kSession = 6 - 3;
  constexpr size_t kStart = 22 - 3;
  if (fields.size() > kStart && absl::SimpleAtoi(fields[kSession], &stat.session)) {
    (void)absl::SimpleAtoi(fields[kStart], &stat.start);
  }
  return stat;
}

}  // namespace

v1::JobInfo MakeJobInfo(const std::string& name, const std::string& command,
                        const relay::JobSettings& settings) {
  v1::JobInfo job;
  job.set_id(RandomId());
  job.set_name(CleanText(name));
  job.set_command(CleanText(command));
  job.set_host(HostName());
  job.set_user(UserName());
  job.set_start_ns(MonotonicNs());
  job.set_start_realtime_ns(RealtimeNs());
  job.set_lull_version(kVersion);
  job.set_overhead_budget_percent(relay::OverheadBudgetPercent(settings));
  job.set_no_host_samples(settings.no_host_samples());
  return job;
}

std::string CommandText(const std::vector<std::string>& argv) {
  std::vector<std::string> quoted;
  for (const std::string& argument : argv) quoted.push_back(Quoted(argument));
  return absl::StrJoin(quoted, " ");
}

std::string CommandOfPreloaded(int session) {
  std::string newest;
  uint64_t newest_start = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    int pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == getpid()) {
      continue;
    }
    StatFields stat = ReadStat(pid);
    if (stat.start < newest_start || (session != 0 && stat.session != session))
      continue;
    if (!HasShim(pid)) continue;
    newest = CommandTextOf(pid);
    newest_start = stat.start;
  }
  return newest;
}

}  // namespace lull
