#include "daemon/compare/each_process.h"

#include <algorithm>

#include "daemon/compare/per_step.h"
#include "daemon/compare/rates.h"
#include "daemon/compare/sync_changes.h"

namespace lull::compare {
namespace {

// Without the overview, which is of all processes.
Run Only(const Run& run, size_t process) {
  Run one;
  one.processes = {run.processes[process]};
  one.replies = {run.replies[process]};
  one.files = FilesOf(run);
  one.lines = LinesOf(run);
  return one;
}

}  // namespace

std::vector<OfProcess> CompareEachProcess(const Runs& a, const Runs& b) {
  const size_t count = b.front().processes.size();
  const bool alike = std::all_of(b.begin(), b.end(), [count](const Run& run) {
    return run.processes.size() == count && run.replies.size() == count;
  });
  if (!alike || count < 2) return {};
  std::vector<OfProcess> each;
  for (size_t process = 0; process < count; ++process) {
    Runs of_it;
    for (const Run& run : b) of_it.push_back(Only(run, process));
    OfProcess& told = each.emplace_back();
    told.rank = b.front().processes[process].rank;
    told.pid = b.front().processes[process].pid;
    for (const Run& run : of_it) {
      const PerStep per_step(run);
      told.gpu_step_ms.push_back(per_step.traced() ? per_step.MeanStepMs() : 0);
    }
    told.syncs = CompareSyncs(a, of_it);
    told.causes = CompareCauses(a, of_it);
    told.host = CompareHost(a, of_it);
  }
  return each;
}

}  // namespace lull::compare
