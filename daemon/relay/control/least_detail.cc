#include "daemon/relay/control/least_detail.h"

#include <algorithm>

namespace lull::relay {
namespace {

// A span is short: its mean is off by where it begins and ends among the steps.
constexpr double kClearlyOver = 1.25;

}  // namespace

void LeastDetail::Add(const HooksLook& window) {
  if (step_ns_ == 0) return;
  windows_ = std::min(windows_ + 1, kWindows);
  share_ += (window.share() - share_) / windows_;
}

bool LeastDetail::AddEarly(const HooksLook& look, double part) {
  // It may be an evaluation that goes on.
  if (step_ns_ == 0 || overdue_) {
    span_ = {};
    return false;
  }
  span_.Add(look);
  if (span_.ns < std::max(kEarlySpanNs, 2 * step_ns_)) return false;
  const bool over = span_.share() > kClearlyOver * part;
  early_over_ = over ? early_over_ + 1 : 0;
  span_ = {};
  return !over;
}

void LeastDetail::Forget() {
  windows_ = early_over_ = 0;
  span_ = {};
}

}  // namespace lull::relay
