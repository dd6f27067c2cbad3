// Whether hooks take more than their part of the budget though they leave out all
// detail that they can: in the mean, among steps of the target. What goes on elsewhere
// no share of steps can make cheaper (step_share.h).
//
// It is the mean of the last kWindows windows of a second, or of two steps, as a step
// may launch first and wait then. Early in a watch there is no time for those: two
// spans in a row, each of whole steps and kEarlySpanNs at least, that are clearly over.
// There what goes on after the last step counts once the next one has ended: it may be
// an evaluation, which makes a step far longer.
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
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kWindows = 10;
  static constexpr uint64_t kEarlySpanNs = 600'000'000;

  struct Steps {
    uint64_t length_ns = 0;   // how long they take; 0: the process is not among them
    uint64_t end_ns = 0;      // of the last one
    uint64_t far_longer = 0;  // so many have been
  };
  // Before what is added next.
  void SetSteps(const Steps& steps) { steps_ = steps; }
  uint64_t step_ns() const { return steps_.length_ns; }

  void Add(const HooksLook& window);
  // `part`: what hooks may take, of all time. True: a span has ended, and is not over.
  bool AddEarly(const HooksLook& look, double part);
  bool IsOver(double part) const { return windows_ == kWindows && share_ > part; }
  bool IsEarlyOver() const { return early_over_ >= 2; }
  // It begins anew: there was more detail, or other windows are judged from now on.
  void Forget();

 private:
  Steps steps_;
  HooksLook span_;        // that goes on
  uint64_t windows_ = 0;  // at most kWindows
  double share_ = 0;      // their fading mean
  HooksLook since_step_;  // early: since the last one that ended
  Steps seen_;            // early, at the last look
  int early_over_ = 0;    // spans in a row
};

}  // namespace lull::relay
