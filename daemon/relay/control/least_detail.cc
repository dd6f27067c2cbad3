#include "daemon/relay/control/least_detail.h"

#include <algorithm>
#include <utility>

namespace lull::relay {
namespace {

// An early span is short: its mean is off by where it begins and ends among the steps.
constexpr double kClearlyOver = 1.25;

}  // namespace

bool LeastDetail::AddToSpan(const HooksLook& look, double part) {
  const Steps before = std::exchange(seen_, steps_);
  if (steps_.end_ns == before.end_ns) {
    between_.Add(look);
    return false;
  }
  const bool long_since =
      std::exchange(out_of_sight_, false) || steps_.far_longer != before.far_longer;
  const HooksLook between = std::exchange(between_, {});
  HooksLook steps = std::exchange(with_steps_, look);
  if (long_since && between.share() > part) {
    with_steps_ = {};  // it has begun in the one look and ended in the other
    return false;
  }
  steps.Add(between);
  span_.Add(steps);
  return true;
}

void LeastDetail::Add(const HooksLook& window, double part) {
  if (!AddToSpan(window, part) || span_.ns < 2 * steps_.length_ns) return;
  const uint64_t windows = std::clamp<uint64_t>(span_.ns / kWindowNs, 1, kWindows);
  windows_ = std::min(windows_ + windows, kWindows);
  share_ += (span_.share() - share_) * static_cast<double>(windows) /
            static_cast<double>(windows_);
  span_ = {};
}

bool LeastDetail::AddEarly(const HooksLook& look, double part) {
  if (!AddToSpan(look, part) || span_.ns < kEarlySpanNs) return false;
  const bool over = span_.share() > kClearlyOver * part;
  early_over_ = over ? early_over_ + 1 : 0;
  span_ = {};
  return !over;
}

void LeastDetail::Forget() {
  windows_ = 0;
  early_over_ = 0;
  span_ = {};
  Skip();
}

void LeastDetail::Skip() {
  with_steps_ = between_ = {};
  if (windows_ > 0) --windows_;
  seen_ = steps_;
  out_of_sight_ = steps_.length_ns == 0;
}

}  // namespace lull::relay
