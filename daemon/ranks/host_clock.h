// The clock of a host beside the one that all hosts are compared by, from what was read
// of both over hours. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/base/clock_bound.h"

namespace lull::ranks {

// Common time is the reference clock's, and kBase later: no host has booted so long
// before the reference that its times would be negative.
class HostClock {
 public:
  static constexpr uint64_t kBase = uint64_t{1} << 60;

  // The reference itself: exact.
  HostClock() = default;
  // From (reference - host), read at times of the host. nullopt: there is nothing, or
  // it cannot all be true; a clock stood still in between, as in a suspended host.
  static std::optional<HostClock> From(std::vector<ClockBound> readings);

  // Keeps the order of times.
  uint64_t ToCommon(uint64_t host_ns) const;
  // 0 for what lies before the clock began.
  uint64_t FromCommon(uint64_t common_ns) const;
  // The common time of what happened then on the host is off by this at most.
  uint64_t ErrorAt(uint64_t common_ns) const;

 private:
  struct Interval {
    int64_t low_ns = 0;
    int64_t high_ns = 0;
    int64_t Middle() const { return low_ns + (high_ns - low_ns) / 2; }
  };
  Interval OffsetAt(uint64_t host_ns) const;

  // By time, each within what all others allow; none for the reference.
  std::vector<ClockBound> readings_;
};

}  // namespace lull::ranks
