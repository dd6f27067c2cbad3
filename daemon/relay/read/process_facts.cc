#include "daemon/relay/read/process_facts.h"

#include <algorithm>
#include <string>

#include "absl/strings/numbers.h"
#include "daemon/base/text.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/rank.h"
#include "daemon/procfs/run_id.h"
#include "daemon/procfs/stat.h"

namespace lull::relay {
namespace {

constexpr size_t kMaxEnvironment = 1u << 20;

}  // namespace

uint32_t ParentOf(pid_t pid) {
  std::string stat = Procfs().Read(pid, "stat").text;
  uint32_t parent = 0;
  return absl::SimpleAtoi(StatField(stat, kStatParent), &parent) ? parent : 0;
}

lull::v1::ProcessInfo ReadProcessFacts(pid_t pid) {
  lull::v1::ProcessInfo info;
  info.set_pid(static_cast<uint32_t>(pid));
  info.set_parent_pid(ParentOf(pid));

  const Procfs procfs;
  std::string command = procfs.Read(pid, "cmdline", kMaxWireString + 1).text;
  while (!command.empty() && command.back() == '\0') command.pop_back();
  for (char& c : command) {
    if (c == '\0') c = ' ';
  }
  info.set_command(CleanText(command));
  info.set_executable(CleanText(procfs.Link(pid, "exe").text));
  const std::string environment = procfs.Read(pid, "environ", kMaxEnvironment).text;
  const Rank rank = ReadRank(environment);
  info.set_rank(rank.rank);
  info.set_local_rank(rank.local_rank);
  info.set_world_size(std::max(rank.world_size, 0));
  info.set_run_id(ReadRunId(environment));
  return info;
}

}  // namespace lull::relay
