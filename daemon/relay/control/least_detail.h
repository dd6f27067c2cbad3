// Whether hooks take more than their part of the budget though they leave out all
// detail that they can: in the mean, among steps of the target. What goes on elsewhere
// no share of steps can make cheaper (step_share.h).
//
// Of windows of a second it is the mean of the last kWindows. Early in a watch there is
// no time for those: two spans in a row, each of two steps and kEarlySpanNs at least,
// that are clearly over.
//
// Pure: no clock.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lull::relay {

// A stretch of time, and what hooks took of it.
struct HooksLook {
  uint64_t ns = 0;
  double hooks_ns = 0;
  void Add(const HooksLook& more) { ns += more.ns, hooks_ns += more.hooks_ns; }
  double share() const { return hooks_ns / std::max(1.0, static_cast<double>(ns)); }
};

class LeastDetail {
 public:
  static constexpr int kWindows = 10;
  static constexpr uint64_t kEarlySpanNs = 600'000'000;

  // Before what is added next. How long steps take, 0: the process is not among them;
  // and whether one should have ended long ago.
  void SetSteps(uint64_t length_ns, bool overdue) {
    step_ns_ = length_ns;
    overdue_ = overdue;
  }
  uint64_t step_ns() const { return step_ns_; }

  void Add(const HooksLook& window);
  // `part`: what hooks may take, of all time. True: a span has ended, and is not over.
  bool AddEarly(const HooksLook& look, double part);
  bool IsOver(double part) const { return windows_ == kWindows && share_ > part; }
  bool IsEarlyOver() const { return early_over_ >= 2; }
  // It begins anew: there was more detail, or other windows are judged from now on.
  void Forget();

 private:
  uint64_t step_ns_ = 0;
  bool overdue_ = false;
  int windows_ = 0;  // at most kWindows
  double share_ = 0;    // their fading mean
  int early_over_ = 0;  // spans in a row
  HooksLook span_;      // that goes on
};

}  // namespace lull::relay
