#include "daemon/base/clock_bound.h"

#include <algorithm>
#include <limits>

namespace lull {

std::optional<ClockBound> BoundOf(const std::vector<ClockProbe>& burst) {
  if (burst.empty()) return std::nullopt;
  ClockBound bound{0, std::numeric_limits<int64_t>::min(),
                   std::numeric_limits<int64_t>::max()};
  for (const ClockProbe& probe : burst) {
    bound.at_ns = std::max(bound.at_ns, probe.back_ns);
  }
  for (const ClockProbe& probe : burst) {
    if (probe.back_ns < probe.sent_ns || probe.answered_ns < probe.received_ns) {
      return std::nullopt;
    }
    bound.low_ns = std::max(bound.low_ns, static_cast<int64_t>(probe.answered_ns) -
                                              static_cast<int64_t>(probe.back_ns) -
                                              DriftNs(bound.at_ns - probe.back_ns));
    bound.high_ns = std::min(bound.high_ns, static_cast<int64_t>(probe.received_ns) -
                                                static_cast<int64_t>(probe.sent_ns) +
                                                DriftNs(bound.at_ns - probe.sent_ns));
  }
  if (bound.low_ns > bound.high_ns) return std::nullopt;
  return bound;
}

}  // namespace lull
