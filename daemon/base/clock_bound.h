// How far two clocks are apart, as a bound and not as an estimate.
//
// A client asks a server what its clock shows. Whichever way the call was delayed, the
// server read its clock after the client had asked, and answered before the client had
// the answer: so (server - client) lies in [answered - back, received - sent]. A burst
// of calls leaves what all of them allow.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lull {

struct ClockProbe {
  uint64_t sent_ns = 0;      // client's clock
  uint64_t received_ns = 0;  // server's clock
  uint64_t answered_ns = 0;  // server's clock
  uint64_t back_ns = 0;      // client's clock
};

// At at_ns of the client's clock, (server - client) lies in [low_ns, high_ns].
struct ClockBound {
  uint64_t at_ns = 0;
  int64_t low_ns = 0;
  int64_t high_ns = 0;
};

// By so much two clocks of CLOCK_MONOTONIC may move against each other in `age_ns`, at
// most: 500 ppm, which is what NTP may slew by.
inline int64_t DriftNs(uint64_t age_ns) {
  constexpr uint64_t kOneIn = 2000;
  return static_cast<int64_t>(age_ns / kOneIn) + 1;
}

// At the end of the last of them. nullopt: there is none, or they contradict each
// other, because one of the clocks stood still or jumped.
std::optional<ClockBound> BoundOf(const std::vector<ClockProbe>& burst);

}  // namespace lull
