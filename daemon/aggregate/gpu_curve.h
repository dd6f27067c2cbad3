// How much of a device's time was traced, and how much of that idle for which cause, up
// to any moment: a curve, so that what lies between two moments is one subtraction.
//
// Exact where its points are kept; older ones are thinned to one a second and fewer,
// and between two of them time counts in proportion. Pure. Times are CLOCK_MONOTONIC in
// ns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace lull::aggregate {

inline constexpr size_t kGapCauses = 13;  // blame::kCauseCount

struct GpuTime {
  uint64_t traced_ns = 0;
  std::array<uint64_t, kGapCauses> idle_ns = {};

  GpuTime& operator+=(const GpuTime& more) {
    traced_ns += more.traced_ns;
    for (size_t i = 0; i < kGapCauses; ++i) idle_ns[i] += more.idle_ns[i];
    return *this;
  }
};

class GpuCurve {
 public:
  // Points that are kept; about 120 bytes each.
  static constexpr size_t kMost = 1 << 16;

  // Idle stretches before the traced time that they are in (AddTraced), both in the
  // order of time. A stretch may reach beyond that traced time, into the next.
  void AddIdle(uint64_t start_ns, uint64_t end_ns, size_t cause);
  void AddTraced(uint64_t start_ns, uint64_t end_ns);

  // What lies in [start_ns, end_ns). Only what was added counts.
  GpuTime Between(uint64_t start_ns, uint64_t end_ns) const;

  size_t size() const { return points_.size() + idle_.size(); }

 private:
  struct Point {
    uint64_t time_ns;
    GpuTime until;
  };
  struct Idle {
    uint64_t start_ns, end_ns;
    size_t cause;
  };

  void AddPoint(uint64_t time_ns, uint64_t traced_ns, size_t cause, uint64_t idle_ns);
  GpuTime At(uint64_t time_ns) const;
  void Thin();

  std::deque<Idle> idle_;      // not yet in points_
  std::vector<Point> points_;  // by time
};

}  // namespace lull::aggregate
