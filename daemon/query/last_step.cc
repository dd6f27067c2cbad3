#include "daemon/query/last_step.h"

#include <algorithm>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

constexpr uint32_t kStepsOfAProcess = 64;

// Where a program began to mark steps only after periods had been numbered, these hide
// the marked ones for as long as their numbers are higher: nothing is said then.
bool IsMarked(const storage::StepRow& step) {
  return step.source != v1::STEP_SOURCE_NONE && step.source != v1::STEP_SOURCE_PERIOD;
}

}  // namespace

absl::StatusOr<std::optional<LastStep>> FindLastStep(
    storage::StoreReader& reader, const Recorded& recorded,
    const std::vector<storage::ProcessRow>& processes, uint64_t at_ns) {
  const storage::ProcessRow* newest = nullptr;
  uint64_t newest_ns = 0;
  for (const storage::ProcessRow& process : processes) {
    LULL_ASSIGN_OR_RETURN(auto steps,
                          reader.catalogue().Steps(process.id, 0, at_ns, 1));
    if (steps.empty()) continue;
    const storage::StepRow& step = steps.front();
    // Whether this one still makes steps nobody knows.
    if (!IsMarked(step)) return std::nullopt;
    // One that has not ended then is the next one; the one before ended as it began.
    const uint64_t end_ns = step.end_ns <= at_ns ? step.end_ns : step.start_ns;
    if (end_ns <= newest_ns) continue;
    newest_ns = end_ns;
    newest = &process;
  }
  if (newest == nullptr) return std::nullopt;
  std::vector<uint64_t> lengths;
  LULL_ASSIGN_OR_RETURN(
      auto steps, reader.catalogue().Steps(newest->id, 0, at_ns, kStepsOfAProcess));
  for (const storage::StepRow& step : steps) {
    if (!IsMarked(step) || step.end_ns > at_ns) continue;
    if (step.end_ns > step.start_ns) lengths.push_back(step.end_ns - step.start_ns);
  }
  if (lengths.empty()) return std::nullopt;  // of the first one only its end is known
  return LastStep{recorded.Within(newest_ns, at_ns), LowerMedian(std::move(lengths))};
}

}  // namespace lull::query
