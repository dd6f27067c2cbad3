#include "cli/job/job_info.h"

#include <pwd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "cli/client/install.h"
#include "daemon/base/clock.h"
#include "daemon/base/clock_identity.h"
#include "daemon/base/host_name.h"
#include "daemon/base/text.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/run_id.h"
#include "daemon/procfs/stat.h"
#include "daemon/relay/options.h"

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

std::string CommandTextOf(pid_t pid) {
  std::string text = Procfs().Read(pid, "cmdline").text;
  if (!text.empty() && text.back() == '\0') text.pop_back();
  if (text.empty()) return "";
  return CommandText(absl::StrSplit(text, '\0'));
}

bool HasShim(pid_t pid) {
  return absl::StrContains(Procfs().Read(pid, "maps", SIZE_MAX).text, "/liblull.so");
}

}  // namespace

v1::JobInfo MakeJobInfo(const std::string& name, const std::string& command,
                        const v1::JobSettings& settings) {
  v1::JobInfo job;
  job.set_id(RandomId());
  job.set_name(CleanText(name));
  job.set_command(CleanText(command));
  job.set_host(HostName());
  job.set_user(UserName());
  job.set_start_ns(MonotonicNs());
  job.set_start_realtime_ns(RealtimeNs());
  job.set_boot_id(OwnClock().boot_id);
  job.set_time_namespace(OwnClock().time_namespace);
  job.set_lull_version(kVersion);
  *job.mutable_settings() = settings;
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
  const Procfs procfs;
  for (pid_t pid : procfs.Pids()) {
    if (pid == getpid()) continue;
    std::string stat = procfs.Read(pid, "stat").text;
    int in_session = -1;
    uint64_t start = 0;
    if (!absl::SimpleAtoi(StatField(stat, kStatSession), &in_session) ||
        !absl::SimpleAtoi(StatField(stat, kStatStart), &start) ||
        start < newest_start || (session != 0 && in_session != session)) {
      continue;
    }
    if (!HasShim(pid)) continue;
    newest = CommandTextOf(pid);
    newest_start = start;
  }
  return newest;
}

}  // namespace lull
