#include "daemon/aggregate/buckets.h"

#include <algorithm>

#include "daemon/aggregate/round_up.h"
#include "daemon/base/check.h"

namespace lull::aggregate {
namespace {

constexpr uint64_t kFanOut = uint64_t{1} << kBucketShift;

void Append(Cover& cover, uint32_t level, uint64_t first, uint64_t end) {
  if (first < end) cover.runs.push_back({level, first, end});
}

// Level-0 buckets [first, end) as runs that rise to the widest level that fits and
// then fall again. `first` and `end` are in buckets of `level`.
void CoverBuckets(Cover& cover, uint32_t level, uint64_t first, uint64_t end) {
  if (first >= end) return;
  if (level + 1 == kBucketLevels) return Append(cover, level, first, end);
  uint64_t up = RoundUp(first, kFanOut);
  uint64_t down = end == kForever ? kForever : end / kFanOut * kFanOut;
  if (up >= down) return Append(cover, level, first, end);
  Append(cover, level, first, up);
  CoverBuckets(cover, level + 1, up / kFanOut,
               down == kForever ? kForever : down / kFanOut);
  if (end != kForever) Append(cover, level, down, end);
}

}  // namespace

Cover CoverRange(uint64_t since, uint64_t until) {
  Cover cover;
  if (since >= until) return cover;
  uint64_t first = since / kBucketNs + (since % kBucketNs != 0 ? 1 : 0);
  uint64_t end = until == kForever ? kForever : until / kBucketNs;
  if (end != kForever && first > end) {  // within one bucket
    cover.head = {since, until};
    return cover;
  }
  if (since % kBucketNs != 0) cover.head = {since, first * kBucketNs};
  CoverBuckets(cover, 0, first, end);
  uint64_t at = first;  // in buckets of level 0
  for (const BucketRun& run : cover.runs) {
    const uint32_t shift = kBucketShift * run.level;
    LULL_CHECK(run.first < run.end && run.first << shift == at,
               "the buckets of a range overlap or leave some out");
    at = run.end == kForever ? kForever : run.end << shift;
  }
  LULL_CHECK(at == std::max(first, end), "the buckets of a range are not the range");
  if (end != kForever && until % kBucketNs != 0) cover.tail = {end * kBucketNs, until};
  return cover;
}

}  // namespace lull::aggregate
