#include "daemon/aggregate/host_sample.h"

#include <algorithm>
#include <cmath>

namespace lull::aggregate {

Share ShareOf(const Sampled& part, const Sampled& whole) {
  constexpr double kZ = 1.96;
  if (whole.time_ns == 0) return {};
  const auto total = static_cast<double>(whole.time_ns);
  const double p = std::min(1.0, static_cast<double>(part.time_ns) / total);
  if (IsExact(whole)) return {100 * p, 100 * p, 100 * p};
  double n = static_cast<double>(whole.samples);
  if (whole.square_us > 0) {
    n = std::min(n, total / 1e3 * (total / 1e3) / static_cast<double>(whole.square_us));
  }
  n = std::max(n, 1.0);
  const double z2n = kZ * kZ / n;
  const double centre = (p + z2n / 2) / (1 + z2n);
  const double half = kZ / (1 + z2n) * std::sqrt(p * (1 - p) / n + z2n / (4 * n));
  // The interval holds the share itself, whatever the last bit says.
  return {100 * p, 100 * std::clamp(centre - half, 0.0, p),
          100 * std::clamp(centre + half, p, 1.0)};
}

}  // namespace lull::aggregate
