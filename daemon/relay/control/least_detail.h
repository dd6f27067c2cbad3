// Whether hooks take more than their part of the budget though they leave out all
// detail that they can: in the mean, among steps of the target. What goes on elsewhere
// no share of steps can make cheaper (step_share.h).
//
// It is the mean of the last kWindows windows of a second, or of two steps, as a step
// may launch first and wait then. Early in a watch there is no time for those: two
// spans in a row, each of whole steps and kEarlySpanNs at least, that are clearly over.
//
// What goes on after the last step counts once the next one has ended. Where it went on
// for far longer than a step, and was dear in the looks without one, it does not: it is
// an evaluation, or what comes before the first step. A wait is cheap, and counts.
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
  // A mean to which nothing was added for so long is none.
  static constexpr uint64_t kForgetNs = 60'000'000'000;

  struct Steps {
    uint64_t length_ns = 0;   // how long they take; 0: the process is not among them
    uint64_t end_ns = 0;      // of the last one
    uint64_t far_longer = 0;  // so many have been
  };
  // Before what is added next.
  void SetSteps(const Steps& steps) {
    steps_ = steps;
    out_of_sight_ |= steps.length_ns == 0;
  }
  const Steps& steps() const { return steps_; }
  uint64_t step_ns() const { return steps_.length_ns; }

  // Of a look, any one.
  struct How {
    bool counts = false;  // there was the least detail, and no tracing
    bool early = false;   // in a watch
    double part = 0;      // what hooks may take, of all time
  };
  struct Told {
    HooksLook no_steps;  // looks before this one that have turned out to be none
    bool calm = false;   // an early span has ended, and is not over
  };
  Told Add(const HooksLook& look, const How& how);
  bool IsOver(double part) const { return windows_ == kWindows && share_ > part; }
  bool IsEarlyOver() const { return early_over_ >= 2; }
  // It begins anew: other windows are judged from now on.
  void Forget();

 private:
  void Age(const HooksLook& look, bool counts);
  // False: the span goes on, or is over.
  bool EndEarlySpan(double part);
  void EndSpan();

  Steps steps_;
  Steps seen_;                 // at the last look
  bool out_of_sight_ = false;  // steps were, since then
  HooksLook last_;             // in which one ended, if it counts
  HooksLook since_;            // the looks since then
  bool whole_ = false;         // all of those count
  HooksLook span_;             // that goes on
  uint64_t windows_ = 0;       // at most kWindows
  double share_ = 0;           // their fading mean
  int early_over_ = 0;         // spans in a row
  uint64_t left_out_ns_ = 0;   // looks in a row that do not count
};

}  // namespace lull::relay
