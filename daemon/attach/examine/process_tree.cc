#include "daemon/attach/examine/process_tree.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "absl/functional/function_ref.h"
#include "daemon/attach/examine/process_table.h"
#include "daemon/attach/examine/role.h"

namespace lull::attach {
namespace {

class Chooser {
 public:
  Chooser(pid_t root, ProcessTable& table)
      : root_(root), table_(table), tree_(table.TreeBelow(root)) {
    for (pid_t pid : tree_) {
      const Process& process = table_.Get(pid);
      roles_[pid] = RoleOf(process, &table_.Get(process.parent));
    }
  }

  std::vector<pid_t> Choose() {
    for (pid_t pid : tree_) {
      if (IsOrdinary(pid) && table_.Get(pid).uses_cuda()) chosen_.insert(pid);
    }
    AddCpuRanks();
    if (chosen_.empty()) AddPython();
    if (chosen_.empty() && tree_.size() == 1 && IsOrdinary(root_)) {
      chosen_.insert(root_);
    }
    std::vector<pid_t> in_order;
    std::copy_if(tree_.begin(), tree_.end(), std::back_inserter(in_order),
                 [this](pid_t pid) { return chosen_.count(pid) != 0; });
    return in_order;
  }

 private:
  bool IsOrdinary(pid_t pid) {
    const Process& process = table_.Get(pid);
    return process.exists && process.state != 'Z' && roles_[pid] == Role::kOrdinary;
  }

  // Between `pid` and the root, the root included.
  bool HasAbove(pid_t pid, absl::FunctionRef<bool(pid_t)> is_it) {
    // At most once through the tree: PIDs that are used again could make a circle.
    for (size_t left = tree_.size(); pid != root_ && left > 0; --left) {
      pid = table_.Get(pid).parent;
      if (roles_.count(pid) == 0) return false;
      if (is_it(pid)) return true;
    }
    return false;
  }

  bool WrapsGpuWork(pid_t wrapper, int rank) {
    return std::any_of(chosen_.begin(), chosen_.end(), [&](pid_t pid) {
      return table_.Get(pid).uses_cuda() && table_.Get(pid).rank.rank == rank &&
             HasAbove(pid, [wrapper](pid_t above) { return above == wrapper; });
    });
  }

  void AddCpuRanks() {
    for (pid_t pid : tree_) {
      const Process& process = table_.Get(pid);
      int rank = process.rank.rank;
      if (!IsOrdinary(pid) || !process.is_python || rank < 0) continue;
      auto is_its_rank = [this, rank](pid_t above) {
        return chosen_.count(above) != 0 && table_.Get(above).rank.rank == rank;
      };
      if (!HasAbove(pid, is_its_rank) && !WrapsGpuWork(pid, rank)) {
        chosen_.insert(pid);
      }
    }
  }

  void AddPython() {
    auto is_chosen = [this](pid_t pid) { return chosen_.count(pid) != 0; };
    for (pid_t pid : tree_) {
      if (IsOrdinary(pid) && table_.Get(pid).is_python && !HasAbove(pid, is_chosen)) {
        chosen_.insert(pid);
      }
    }
  }

  pid_t root_;
  ProcessTable& table_;
  std::vector<pid_t> tree_;
  std::map<pid_t, Role> roles_;
  std::set<pid_t> chosen_;
};

}  // namespace

std::vector<pid_t> FindWorkers(pid_t root, const Procfs& procfs) {
  ProcessTable table(procfs);
  if (!table.Get(root).exists) return {};
  return Chooser(root, table).Choose();
}

}  // namespace lull::attach
