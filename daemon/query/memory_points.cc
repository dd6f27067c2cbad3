#include <algorithm>
#include <map>

#include "daemon/base/status.h"
#include "daemon/query/memory_parts.h"

namespace lull::query {
namespace {

constexpr uint64_t kMaxPoints = 1024;

int64_t LiveOf(const storage::StepMemoryRow& row, uint32_t series) {
  for (const auto& [id, bytes] : row.live) {
    if (id == series) return bytes;
  }
  return 0;
}

struct Change {
  int64_t live = 0;
  int64_t reserved = 0;
};

}  // namespace

std::vector<MemoryPoint> PointsOfSteps(const View& view,
                                       const std::vector<storage::StepMemoryRow>& steps,
                                       uint32_t whole, uint32_t reserved) {
  std::vector<MemoryPoint> points;
  for (const storage::StepMemoryRow& row : steps) {
    uint64_t time = aggregate::AfterStart(row.end_ns, view.job.info.start_ns());
    if (time < view.range.since || time >= view.range.until) continue;
    points.push_back({row.step, time, LiveOf(row, whole), LiveOf(row, reserved)});
  }
  return points;
}

absl::StatusOr<std::vector<MemoryPoint>> PointsOfTime(const View& view, int64_t process,
                                                      uint32_t whole,
                                                      uint32_t reserved) {
  const storage::JobRow& job = view.job;
  const TimeRange range = view.range;
  const uint64_t until = std::min(
      range.until, aggregate::AfterStart(job.last_event_ns, job.info.start_ns()) + 1);
  uint64_t width = aggregate::kBucketNs;
  uint32_t level = 0;
  while (level + 1 < aggregate::kBucketLevels && until > range.since &&
         (until - range.since) / width > kMaxPoints) {
    width <<= aggregate::kBucketShift;
    ++level;
  }
  std::map<uint64_t, Change> changes;  // by bucket
  const uint64_t end = until / width + 1;
  LULL_RETURN_IF_ERROR(view.reader->cells().ReadSeries(
      process, whole, level, 0, end,
      [&](uint64_t bucket, const Cell& cell) { changes[bucket].live = cell.live; }));
  if (reserved != 0) {
    LULL_RETURN_IF_ERROR(view.reader->cells().ReadSeries(
        process, reserved, level, 0, end, [&](uint64_t bucket, const Cell& cell) {
          changes[bucket].reserved = cell.live;
        }));
  }
  std::vector<MemoryPoint> points;
  MemoryPoint at;
  for (const auto& [bucket, change] : changes) {
    at.time_ns = (bucket + 1) * width;
    at.live += change.live;
    at.reserved += change.reserved;
    if (at.time_ns > range.since && at.time_ns <= range.until) points.push_back(at);
  }
  return points;
}

}  // namespace lull::query
