#include "daemon/compare/run_facts.h"

#include <algorithm>
#include <set>

#include "daemon/compare/footing.h"
#include "daemon/compare/per_step.h"
#include "daemon/words/facts.h"

namespace lull::compare {
namespace {

// One process without GPU truth is not covered by another that has it. Where traced
// time only touches the steps, it may be idle as no step is.
bool EachTraced(const Run& run) {
  for (size_t i = 0; i < run.replies.size(); ++i) {
    uint64_t all_ns = 0;
    for (const Step& step : run.processes[i].steps) all_ns += step.duration_ns;
    const uint64_t traced_ns = run.replies[i].all.gpu().traced_ns();
    if (traced_ns == 0 || traced_ns < all_ns / run.processes[i].steps.size()) {
      return false;
    }
  }
  return !run.replies.empty();
}

const v1::ProcessRow* RowOf(const Run& run, const ProcessSteps& process) {
  for (const v1::ProcessRow& row : run.whole.processes()) {
    if (row.pid() == process.pid && row.rank() == process.rank) return &row;
  }
  return nullptr;
}

bool MadeGpuCalls(const v1::ProcessRow* row) {
  return row != nullptr && (row->gpu() || row->launches() > 0 || row->blocked_ns() > 0);
}

bool CollectionsSeen(const v1::ProcessRow* row) {
  return row != nullptr && (row->gc_hook() == v1::GC_HOOK_STATE_ON ||
                            row->gc_hook() == v1::GC_HOOK_STATE_NO_PYTHON);
}

bool LoadsSeen(const v1::ProcessRow* row) {
  return row != nullptr && row->scope_hook() != v1::SCOPE_HOOK_STATE_UNAVAILABLE;
}

// A trace of others has no hooks, and says itself what is not in it.
bool IsImported(const Run& run) { return run.whole.job().has_imported(); }

// Processes that a rank starts are of its rank, and need no steps.
std::vector<int> RanksWithoutSteps(const Run& run) {
  std::set<int> ranks;
  for (const v1::ProcessRow& row : run.whole.processes()) {
    if (row.rank() >= 0) ranks.insert(row.rank());
  }
  for (const ProcessSteps& process : run.processes) ranks.erase(process.rank);
  return {ranks.begin(), ranks.end()};
}

std::vector<std::string> AllocatorsOf(const Run& run) {
  std::set<std::string> allocators;
  for (const v1::MemoryRow& row : run.whole.memory().rows()) {
    allocators.insert(row.allocator());
  }
  return {allocators.begin(), allocators.end()};
}

}  // namespace

RunFacts FactsOf(const Run& run) {
  RunFacts facts;
  facts.job = run.whole.job();
  facts.processes = run.processes.size();
  facts.gpu_calls = !run.processes.empty();
  for (const ProcessSteps& process : run.processes) {
    facts.steps += process.steps.size();
    facts.dropped += process.dropped;
    const v1::ProcessRow* row = RowOf(run, process);
    facts.gpu_calls = facts.gpu_calls && MadeGpuCalls(row);
    if (IsImported(run)) continue;
    facts.collections_seen = facts.collections_seen && CollectionsSeen(row);
    facts.loads_seen = facts.loads_seen && LoadsSeen(row);
  }
  if (EachTraced(run)) facts.gpu_step_ms = PerStep(run).MeanStepMs();
  const v1::Gpu& gpu = run.whole.gpu();
  facts.gpu_missing = gpu.missing();
  facts.gpu_complete = MissingRecords(gpu) == 0;
  facts.processes_left_out = run.processes_left_out;
  // What was left out may be of any rank.
  if (run.processes_left_out == 0) facts.ranks_without_steps = RanksWithoutSteps(run);
  facts.allocators = AllocatorsOf(run);
  facts.recorded_whole = !facts.job.partly_recorded() && !facts.job.attached();
  facts.steps_sampled = AreStepsSampled(facts.job);
  return facts;
}

}  // namespace lull::compare
