#include "daemon/aggregate/gpu_curve.h"

#include <algorithm>

#include "daemon/base/check.h"

namespace lull::aggregate {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

uint64_t InProportion(uint64_t from, uint64_t to, uint64_t part, uint64_t whole) {
  return from + static_cast<uint64_t>(static_cast<unsigned __int128>(to - from) * part /
                                      whole);
}

}  // namespace

void GpuCurve::AddIdle(uint64_t start_ns, uint64_t end_ns, size_t cause) {
  if (start_ns < end_ns && cause < kGapCauses)
    idle_.push_back({start_ns, end_ns, cause});
}

void GpuCurve::AddTraced(uint64_t start_ns, uint64_t end_ns) {
  if (!points_.empty()) start_ns = std::max(start_ns, points_.back().time_ns);
  if (start_ns >= end_ns) return;
  AddPoint(start_ns, 0, 0, 0);
  uint64_t at = start_ns;
  while (!idle_.empty() && idle_.front().start_ns < end_ns) {
    Idle& idle = idle_.front();
    const uint64_t from = std::max(idle.start_ns, at);
    const uint64_t to = std::min(idle.end_ns, end_ns);
    if (from < to) {
      if (from > at) AddPoint(from, from - at, 0, 0);
      AddPoint(to, to - from, idle.cause, to - from);
      at = to;
    }
    if (idle.end_ns > end_ns) {
      idle.start_ns = end_ns;
      break;
    }
    idle_.pop_front();
  }
  if (at < end_ns) AddPoint(end_ns, end_ns - at, 0, 0);
  if (points_.size() > kMost) Thin();
}

// `traced_ns` and `idle_ns` since the point before.
void GpuCurve::AddPoint(uint64_t time_ns, uint64_t traced_ns, size_t cause,
                        uint64_t idle_ns) {
  LULL_CHECK(points_.empty() || points_.back().time_ns <= time_ns,
             "the curve of a device goes back in time");
  Point point{time_ns, points_.empty() ? GpuTime() : points_.back().until};
  point.until.traced_ns += traced_ns;
  point.until.idle_ns[cause] += idle_ns;
  points_.push_back(point);
}

// The older half: one point a second, and if that is not enough every other.
void GpuCurve::Thin() {
  const size_t half = points_.size() / 2;
  size_t kept = 0;
  uint64_t second = UINT64_MAX;
  for (size_t i = 0; i < half; ++i) {
    if (i > 0 && points_[i].time_ns / kSecond == second) continue;
    second = points_[i].time_ns / kSecond;
    points_[kept++] = points_[i];
  }
  if (kept > half / 2) {
    for (size_t i = 0; i < kept; i += 2) points_[i / 2] = points_[i];
    kept = (kept + 1) / 2;
  }
  points_.erase(points_.begin() + static_cast<ptrdiff_t>(kept),
                points_.begin() + static_cast<ptrdiff_t>(half));
}

GpuTime GpuCurve::At(uint64_t time_ns) const {
  auto next = std::upper_bound(
      points_.begin(), points_.end(), time_ns,
      [](uint64_t time, const Point& point) { return time < point.time_ns; });
  if (next == points_.begin()) return {};
  const Point& before = *std::prev(next);
  if (next == points_.end() || before.time_ns == time_ns) return before.until;
  const uint64_t part = time_ns - before.time_ns;
  const uint64_t whole = next->time_ns - before.time_ns;
  GpuTime time;
  time.traced_ns =
      InProportion(before.until.traced_ns, next->until.traced_ns, part, whole);
  for (size_t i = 0; i < kGapCauses; ++i) {
    time.idle_ns[i] =
        InProportion(before.until.idle_ns[i], next->until.idle_ns[i], part, whole);
  }
  return time;
}

GpuTime GpuCurve::Between(uint64_t start_ns, uint64_t end_ns) const {
  if (start_ns >= end_ns) return {};
  GpuTime time = At(end_ns);
  const GpuTime start = At(start_ns);
  LULL_CHECK(start.traced_ns <= time.traced_ns, "traced time is negative");
  time.traced_ns -= start.traced_ns;
  for (size_t i = 0; i < kGapCauses; ++i) {
    LULL_CHECK(start.idle_ns[i] <= time.idle_ns[i], "idle time is negative");
    time.idle_ns[i] -= start.idle_ns[i];
  }
  return time;
}

}  // namespace lull::aggregate
