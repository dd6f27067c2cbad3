// What share of a target's steps is recorded, where the job is to hold its overhead
// budget by that (JobSettings.sample_steps) or nothing else holds it: one of 2^n,
// drawn, with all detail. In the others hooks rest (preload/steps/control_step.h). What
// recording costs is what our own clocks saw or, where the steps show that it is more,
// what they show (wall_cost.h).
//
//   first look: one control step in 16, to see that there are steps, and what they
//   cost; of a target that nothing else holds, and of one that is attached to, one in
//   4 is recorded
//   over the budget: as many halvings as bring the cost below it
//   far under it, for longer: one halving less
//   all steps would be that, and it was never over: all of them
//
// Between two changes the share of time is a mean over some recorded steps, because a
// step may take longer than the time between two looks.
//
// Pure: no clock. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/relay/control/pace.h"
#include "daemon/steps/step_cost.h"

namespace lull::relay {

class StepShare {
 public:
  // Of so many steps one is a control step while all are recorded.
  static constexpr uint32_t kControlOneIn = 16;
  // At first, where nothing else has held the budget, or there is little time to see.
  static constexpr uint32_t kHalvingsAtOnce = 2;
  static constexpr uint32_t kMostAtOnce = 3;
  // Those that bring `share` of the time, of all steps, below the budget.
  static uint32_t HalvingsAtOnce(double share, double budget_percent);

  // `budget_percent`: of the target's time, for recording alone. `halvings`: as an
  // earlier worker left it.
  explicit StepShare(double budget_percent, uint32_t halvings = 0);

  // In the order of time.
  void AddStep(const steps::TimedStep& step);

  // `cost_ns`: what recording has cost so far. Call it a few times a second.
  void Update(uint64_t now_ns, uint64_t cost_ns);

  uint32_t halvings() const { return halvings_; }
  // Whether hooks rest in steps at all. Else nothing is held by this, and detail has to
  // go: the process may show no steps, or none that can rest.
  bool InCharge(uint64_t now_ns) const {
    return rested_ns_ != 0 &&
           (since_rest_ < kOutOfSightSteps || now_ns < rested_ns_ + kOutOfSightNs) &&
           now_ns < std::max(step_ns_ + kOutOfSightNs, pace_.NextUntil());
  }

 private:
  static constexpr uint64_t kSettleNs = 5'000'000'000;  // cost is told late
  static constexpr uint64_t kShortestNs = 2'000'000'000;
  static constexpr uint64_t kLongestNs = 60'000'000'000;
  static constexpr uint64_t kFewestSteps = 8;  // recorded ones
  static constexpr uint64_t kCalmSteps = 32;
  static constexpr double kCalmShare = 0.4;     // of the budget
  static constexpr double kClearlyOver = 1.25;  // the same
  static constexpr uint64_t kOutOfSightNs = 60'000'000'000;
  static constexpr uint64_t kOutOfSightSteps = uint64_t{4} * kControlOneIn;

  void Begin(uint64_t at_ns, uint64_t cost_ns);
  void Set(uint32_t halvings, uint64_t now_ns);

  const double budget_;
  uint32_t halvings_ = 0;
  bool was_over_ = false;
  uint64_t since_rest_ = 0;  // steps; in windows none rests
  uint64_t rested_ns_ = 0;   // the end of the last control step
  uint64_t step_ns_ = 0;     // the end of the last one
  Pace pace_;
  uint64_t recorded_ = 0;    // steps
  // The stretch whose mean is looked at. It stands still where this is not in charge,
  // and after the last step: an evaluation no share makes cheaper.
  uint64_t since_ns_ = 0;  // 0: none yet; in the future: it begins then
  uint64_t cost_then_ns_ = 0;
  uint64_t recorded_then_ = 0;
  uint64_t looked_step_ns_ = 0;  // step_ns_ at the last look
  // At the last look after a step: what is later may be no part of the steps.
  uint64_t last_ns_ = 0;
  uint64_t last_cost_ns_ = 0;
  uint64_t last_recorded_ = 0;
};

}  // namespace lull::relay
