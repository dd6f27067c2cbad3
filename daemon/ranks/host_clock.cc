#include "daemon/ranks/host_clock.h"

#include <algorithm>
#include <utility>

namespace lull::ranks {
namespace {

// What `from` allows at the time of `at`.
void Narrow(const ClockBound& from, ClockBound* at) {
  const int64_t drift =
      DriftNs(at->at_ns > from.at_ns ? at->at_ns - from.at_ns : from.at_ns - at->at_ns);
  at->low_ns = std::max(at->low_ns, from.low_ns - drift);
  at->high_ns = std::min(at->high_ns, from.high_ns + drift);
}

}  // namespace

std::optional<HostClock> HostClock::From(std::vector<ClockBound> readings) {
  if (readings.empty()) return std::nullopt;
  std::stable_sort(
      readings.begin(), readings.end(),
      [](const ClockBound& a, const ClockBound& b) { return a.at_ns < b.at_ns; });
  for (size_t i = 1; i < readings.size(); ++i) {
    Narrow(readings[i - 1], &readings[i]);
    if (readings[i].low_ns > readings[i].high_ns) return std::nullopt;
  }
  for (size_t i = readings.size() - 1; i > 0; --i) {
    Narrow(readings[i], &readings[i - 1]);
  }
  if (std::any_of(readings.begin(), readings.end(),
                  [](const ClockBound& one) { return one.low_ns > one.high_ns; })) {
    return std::nullopt;
  }
  HostClock clock;
  clock.readings_ = std::move(readings);
  return clock;
}

// The two neighbours say it all: each is within what those beyond it allow.
HostClock::Interval HostClock::OffsetAt(uint64_t host_ns) const {
  if (readings_.empty()) return {};
  const auto after = std::upper_bound(
      readings_.begin(), readings_.end(), host_ns,
      [](uint64_t time_ns, const ClockBound& one) { return time_ns < one.at_ns; });
  ClockBound at = after == readings_.end() ? readings_.back() : *after;
  const int64_t drift =
      DriftNs(at.at_ns > host_ns ? at.at_ns - host_ns : host_ns - at.at_ns);
  at = {host_ns, at.low_ns - drift, at.high_ns + drift};
  if (after != readings_.begin() && after != readings_.end()) {
    Narrow(*(after - 1), &at);
  }
  return {at.low_ns, at.high_ns};
}

uint64_t HostClock::ToCommon(uint64_t host_ns) const {
  return host_ns + kBase + static_cast<uint64_t>(OffsetAt(host_ns).Middle());
}

uint64_t HostClock::FromCommon(uint64_t common_ns) const {
  if (readings_.empty()) return common_ns > kBase ? common_ns - kBase : 0;
  // An offset changes by 1 in 2000 of the time that it is taken too early or too late.
  uint64_t host_ns = readings_.front().at_ns;
  for (int i = 0; i < 8; ++i) {
    uint64_t closer_ns =
        common_ns - kBase - static_cast<uint64_t>(OffsetAt(host_ns).Middle());
    if (static_cast<int64_t>(closer_ns) < 0) closer_ns = 0;
    if (std::exchange(host_ns, closer_ns) == closer_ns) break;
  }
  return host_ns;
}

uint64_t HostClock::ErrorAt(uint64_t common_ns) const {
  if (readings_.empty()) return 0;
  const Interval offset = OffsetAt(FromCommon(common_ns));
  return static_cast<uint64_t>(offset.high_ns - offset.low_ns + 1) / 2;
}

}  // namespace lull::ranks
