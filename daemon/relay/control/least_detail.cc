#include "daemon/relay/control/least_detail.h"

#include <algorithm>
#include <utility>

namespace lull::relay {
namespace {

// An early span is short: its mean is off by where it begins and ends among the steps.
constexpr double kClearlyOver = 1.25;

}  // namespace

LeastDetail::Told LeastDetail::Add(const HooksLook& look, const How& how) {
  Age(look, how.counts);
  const Steps before = std::exchange(seen_, steps_);
  if (steps_.end_ns == before.end_ns) {
    since_.Add(look);
    whole_ &= how.counts;
    return {};
  }
  const bool long_since =
      std::exchange(out_of_sight_, false) || steps_.far_longer != before.far_longer;
  const HooksLook since = std::exchange(since_, {});
  HooksLook steps = std::exchange(last_, how.counts ? look : HooksLook{});
  const bool whole = std::exchange(whole_, true);
  if (long_since && since.share() > how.part) {
    last_ = {};  // it has begun in the one look and ended in the other
    return {.no_steps = since, .calm = false};
  }
  if (whole) steps.Add(since);
  span_.Add(steps);
  if (how.early) return {.no_steps = {}, .calm = EndEarlySpan(how.part)};
  EndSpan();
  return {};
}

void LeastDetail::Age(const HooksLook& look, bool counts) {
  left_out_ns_ = counts ? 0 : left_out_ns_ + look.ns;
  if (left_out_ns_ <= kForgetNs) return;
  windows_ = 0;
  span_ = {};
}

bool LeastDetail::EndEarlySpan(double part) {
  if (span_.ns < kEarlySpanNs) return false;
  const bool over = std::exchange(span_, {}).share() > kClearlyOver * part;
  early_over_ = over ? early_over_ + 1 : 0;
  return !over;
}

void LeastDetail::EndSpan() {
  if (span_.ns < std::max(kWindowNs, 2 * steps_.length_ns)) return;
  const uint64_t windows = std::clamp<uint64_t>(span_.ns / kWindowNs, 1, kWindows);
  windows_ = std::min(windows_ + windows, kWindows);
  share_ += (span_.share() - share_) * static_cast<double>(windows) /
            static_cast<double>(windows_);
  span_ = {};
}

void LeastDetail::Forget() {
  windows_ = 0;
  early_over_ = 0;
  last_ = since_ = span_ = {};
  whole_ = false;
  seen_ = steps_;
  out_of_sight_ = steps_.length_ns == 0;
}

}  // namespace lull::relay
