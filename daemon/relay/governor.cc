#include "daemon/relay/governor.h"

#include <algorithm>

#include "preload/abi/segment.h"

namespace lull::relay {

uint32_t Governor::Update(uint64_t now_ns, uint64_t self_ns) {
  if (budget_percent_ <= 0) return level_;
  if (window_start_ns_ == 0) {
    window_start_ns_ = now_ns;
    window_self_ns_ = self_ns;
    return level_;
  }
  if (now_ns < window_start_ns_ + kWindowNs) return level_;
  uint64_t spent = self_ns > window_self_ns_ ? self_ns - window_self_ns_ : 0;
  double percent = 100.0 * static_cast<double>(spent) /
                   static_cast<double>(now_ns - window_start_ns_);
  window_start_ns_ = now_ns;
  window_self_ns_ = self_ns;

  if (percent > budget_percent_) {
    level_ = std::min<uint32_t>(level_ + 1, abi::kThinLaunches);
    highest_ = std::max(highest_, level_);
    calm_ = 0;
  } else if (percent < budget_percent_ / 2 && level_ > 0) {
    if (++calm_ == kCalmWindows) {
      --level_;
      calm_ = 0;
    }
  } else {
    calm_ = 0;
  }
  return level_;
}

}  // namespace lull::relay
