// The processes that a question has come across. Each is read once, so that parents and
// children fit together.
#pragma once

#include <map>
#include <vector>

#include "daemon/attach/examine/process.h"

namespace lull::attach {

class ProcessTable {
 public:
  explicit ProcessTable(Procfs procfs) : procfs_(std::move(procfs)) {}

  const Procfs& procfs() const { return procfs_; }
  // Reads it if it is new; one that is not there has exists == false. The reference
  // stays valid.
  const Process& Get(pid_t pid);
  // Whether `pid` is `ancestor` or one of the processes below it.
  bool IsBelow(pid_t pid, pid_t ancestor);
  // `root`, then all below it, parents before their children.
  std::vector<pid_t> TreeBelow(pid_t root);

 private:
  Procfs procfs_;
  std::map<pid_t, Process> processes_;
};

}  // namespace lull::attach
