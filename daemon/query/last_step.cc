#include "daemon/query/last_step.h"

#include <algorithm>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/base/status.h"

namespace lull::query {
namespace {

constexpr uint32_t kStepsOfAProcess = 64;

}  // namespace

absl::StatusOr<std::optional<LastStep>> FindLastStep(
    storage::StoreReader& reader, const Recorded& recorded,
    const std::vector<storage::ProcessRow>& processes, uint64_t at_ns) {
  std::vector<uint64_t> lengths;
  uint64_t newest_ns = 0;
  for (const storage::ProcessRow& process : processes) {
    LULL_ASSIGN_OR_RETURN(
        auto steps, reader.catalogue().Steps(process.id, 0, at_ns, kStepsOfAProcess));
    for (const storage::StepRow& step : steps) {
      if (step.end_ns <= step.start_ns || step.end_ns > at_ns) continue;
      lengths.push_back(step.end_ns - step.start_ns);
      newest_ns = std::max(newest_ns, step.end_ns);
    }
  }
  if (lengths.empty()) return std::nullopt;
  return LastStep{recorded.Within(newest_ns, at_ns), LowerMedian(std::move(lengths))};
}

}  // namespace lull::query
