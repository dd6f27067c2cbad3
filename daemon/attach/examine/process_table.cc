#include "daemon/attach/examine/process_table.h"

#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/string_view.h"
#include "daemon/procfs/stat.h"

namespace lull::attach {
namespace {

// The parent alone, without all else that ReadProcess looks at. 0 = gone.
pid_t ParentOf(const Procfs& procfs, pid_t pid) {
  std::string status = procfs.Read(pid, "status").text;
  absl::string_view parent = StatusField(status, "PPid");
  pid_t number = 0;
  return absl::SimpleAtoi(parent, &number) ? number : 0;
}

}  // namespace

const Process& ProcessTable::Get(pid_t pid) {
  auto [found, is_new] = processes_.try_emplace(pid);
  if (is_new) found->second = ReadProcess(pid, procfs_);
  return found->second;
}

bool ProcessTable::IsBelow(pid_t pid, pid_t ancestor) {
  std::set<pid_t> seen;  // PIDs that are used again could make a circle
  for (; pid > 0 && seen.insert(pid).second; pid = Get(pid).parent) {
    if (pid == ancestor) return true;
  }
  return false;
}

std::vector<pid_t> ProcessTable::TreeBelow(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (pid_t pid : procfs_.Pids()) children.emplace(ParentOf(procfs_, pid), pid);
  std::vector<pid_t> tree = {root};
  std::set<pid_t> seen = {root};
  for (size_t i = 0; i < tree.size(); ++i) {
    auto [begin, end] = children.equal_range(tree[i]);
    for (auto child = begin; child != end; ++child) {
      if (child->second > 0 && seen.insert(child->second).second) {
        tree.push_back(child->second);
      }
    }
  }
  return tree;
}

}  // namespace lull::attach
