#include "daemon/relay/control/least_detail.h"

#include <algorithm>
#include <utility>

namespace lull::relay {
namespace {

// An early span is short: its mean is off by where it begins and ends among the steps.
constexpr double kClearlyOver = 1.25;

}  // namespace

void LeastDetail::Add(const HooksLook& window) {
  if (steps_.length_ns == 0) return;
  span_.Add(window);
  if (span_.ns < 2 * steps_.length_ns) return;
  const uint64_t windows = std::clamp<uint64_t>(span_.ns / kWindowNs, 1, kWindows);
  windows_ = std::min(windows_ + windows, kWindows);
  share_ += (span_.share() - share_) * static_cast<double>(windows) /
            static_cast<double>(windows_);
  span_ = {};
}

bool LeastDetail::AddEarly(const HooksLook& look, double part) {
  const Steps before = std::exchange(seen_, steps_);
  if (steps_.end_ns == before.end_ns) {
    since_step_.Add(look);
    return false;
  }
  const HooksLook steps = std::exchange(since_step_, look);
  // A wait for data counts, which is cheap.
  const bool evaluated = steps_.far_longer != before.far_longer && steps.share() > part;
  if (evaluated) return false;
  span_.Add(steps);
  if (span_.ns < kEarlySpanNs) return false;
  const bool over = span_.share() > kClearlyOver * part;
  early_over_ = over ? early_over_ + 1 : 0;
  span_ = {};
  return !over;
}

void LeastDetail::Forget() {
  windows_ = 0;
  early_over_ = 0;
  span_ = since_step_ = {};
  seen_ = steps_;
}

}  // namespace lull::relay
