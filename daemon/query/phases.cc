#include "daemon/query/phases.h"

#include "daemon/aggregate/buckets.h"
#include "daemon/base/status.h"

namespace lull::query {

absl::StatusOr<std::optional<uint64_t>> SteadySince(storage::StoreReader& reader,
                                                    const storage::JobRow& job,
                                                    const storage::ProcessRow& process,
                                                    uint64_t end_ns) {
  LULL_ASSIGN_OR_RETURN(auto steps,
                        reader.catalogue().FirstSteps(process.id, kEnoughSteps));
  if (steps.size() < kEnoughSteps || steps.front().number > kWarmUpSteps ||
      steps.front().source == lull::v1::STEP_SOURCE_PERIOD) {
    return std::nullopt;
  }
  for (const storage::StepRow& step : steps) {
    if (step.number <= kWarmUpSteps) continue;
    const uint64_t exact = aggregate::AfterStart(step.start_ns, job.info.start_ns());
    const uint64_t end = aggregate::AfterStart(end_ns, job.info.start_ns());
    const uint64_t since = (exact + aggregate::kBucketNs - 1) / aggregate::kBucketNs *
                           aggregate::kBucketNs;
    if (end <= since || end - since < (end - exact) / 2) return std::nullopt;
    return since;
  }
  return std::nullopt;
}

}  // namespace lull::query
