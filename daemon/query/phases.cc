#include "daemon/query/phases.h"

#include <algorithm>

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
  // What comes after the last step, the end of CUDA or a sleep, is no step: a training
  // of half a second that ended within the second has no steady second.
  LULL_ASSIGN_OR_RETURN(auto last, reader.catalogue().Steps(process.id, 0, end_ns, 1));
  if (!last.empty()) end_ns = std::min(end_ns, last.back().end_ns);
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
