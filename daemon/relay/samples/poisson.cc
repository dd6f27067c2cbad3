#include "daemon/relay/samples/poisson.h"

#include <algorithm>
#include <cmath>

namespace lull::relay {

uint64_t PoissonClock::Gap() {
  // 1 - u is never 0; an hour is never.
  double seconds = -std::log(1 - Uniform()) / rate_;
  return static_cast<uint64_t>(std::min(seconds, 3600.0) * 1e9);
}

void PoissonClock::SetRate(double per_second, uint64_t now_ns) {
  if (per_second == rate_) return;
  rate_ = per_second;
  due_ns_ = rate_ > 0 ? now_ns + Gap() : UINT64_MAX;
}

void PoissonClock::Next() {
  if (rate_ > 0) due_ns_ += Gap();
}

}  // namespace lull::relay
