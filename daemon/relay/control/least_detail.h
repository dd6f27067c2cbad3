// Whether hooks take more than their part of the budget though they leave out all
// detail that they can: in the mean, among steps of the target. What goes on elsewhere
// no share of steps can make cheaper (step_share.h).
//
// It is the mean of the last kWindows windows of a second, or of two steps, as a step
// may launch first and wait then. Early in a watch there is no time for those: two
// spans in a row, each of whole steps and kEarlySpanNs at least, that are clearly over.
//
// What goes on after the last step counts once the next one has ended. Where it went on
// for far longer than a step, and was dear in what lies between the looks that have
// steps, it does not: it is an evaluation, or what comes before the first step. A wait
// is cheap, and counts.
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
  void SetSteps(const Steps& steps) {
    steps_ = steps;
    out_of_sight_ |= steps.length_ns == 0;
  }
  uint64_t step_ns() const { return steps_.length_ns; }

  // `part`: what hooks may take, of all time.
  void Add(const HooksLook& window, double part);
  // True: a span has ended, and is not over.
  bool AddEarly(const HooksLook& look, double part);
  bool IsOver(double part) const { return windows_ == kWindows && share_ > part; }
  bool IsEarlyOver() const { return early_over_ >= 2; }
  // A window that says nothing, as there was more detail. The mean is one window older.
  void Skip();
  // It begins anew: other windows are judged from now on.
  void Forget();

 private:
  // Whether the span has grown by it.
  bool AddToSpan(const HooksLook& look, double part);

  Steps steps_;
  HooksLook with_steps_;       // the last look in which one ended
  HooksLook between_;          // those since then
  Steps seen_;                 // at the last look
  bool out_of_sight_ = false;  // steps were, since then
  HooksLook span_;             // that goes on
  uint64_t windows_ = 0;       // at most kWindows
  double share_ = 0;           // their fading mean
  int early_over_ = 0;         // spans in a row
};

}  // namespace lull::relay
