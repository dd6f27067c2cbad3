// Keeps the cost of our hooks and of GPU tracing in one target within the budget.
// Pure: time comes from the caller. What it takes away, in this order:
//
//   detail of the hooks (abi::Thinning), a step at a time
//   windows of GPU tracing: they are held back until the budget has recovered
//
// Where neither is enough it says so: step_share.h can record fewer steps.
//
// Cost comes in bursts: imports, windows of tracing. So it is judged by a balance: the
// budget flows in with time, all cost flows out, and what is not used is kept for up to
// kCreditNs. A job begins with that much.
//
// Hooks are looked at once a second. A window of a second over the budget is one step
// more, if a third of the credit is used up; under half of the budget for kCalmWindows
// windows is one step less. Two thirds are kept for the GPU, whose windows cost more at
// a time. Below 0, tracing is held if it is the larger part of the cost or if there is
// no detail left to take away; else detail goes. Tracing goes on once the balance would
// pay for as much as there was since it last went on. So over any long time the cost is
// at most the budget, plus kCreditNs worth of it once.
//
// Hooks have a balance of their own, too, which does not pay for tracing, nor for an
// evaluation. While it is below 0 no detail comes back, but early in a watch: of
// bursts, with waits between them, the first seconds of each would have more of it.
//
// A watch of an attached job may be over after seconds. So nothing is kept when it
// begins, but it has its first window whole, as dear as two thirds of the credit. As
// the first look at each line takes longer, no detail goes before hooks have used
// kColdNs worth. For kEarlyNs they are looked at after kEarlyWindowNs each, then have
// kEarlyNs worth. When no detail is left hooks of any job have kColdNs worth at least.
//
// At the least detail launches are recorded in windows of tracing alone. So updates
// between which there was tracing say nothing about the others, and are no part of a
// second that is looked at, unless they were cheap in the mean of a second and a step.
//
// The cost of hooks is what the target's own clock readings saw. That of tracing is
// what they saw (our calls of CUPTI, our callbacks) or, where the steps of the target
// show that it is more, what they show (wall_cost.h): what CUPTI itself adds to each
// launch no clock of ours can see.
#pragma once

#include <cstdint>

#include "daemon/relay/control/first_steps.h"
#include "daemon/relay/control/least_detail.h"

namespace lull::relay {

class Governor {
 public:
  static constexpr uint64_t kWindowNs = 1'000'000'000;
  static constexpr uint64_t kEarlyWindowNs = kWindowNs / 4;
  static constexpr uint64_t kEarlyNs = 5'000'000'000;
  static constexpr uint64_t kColdNs = 1'000'000'000;
  static constexpr int kCalmWindows = 5;
  static constexpr uint64_t kCreditNs = 30'000'000'000;
  static constexpr uint64_t kDebtNs = 300'000'000'000;  // more is forgiven

  struct Verdict {
    uint32_t thinning = 0;  // abi::Thinning
    bool gpu_hold = false;

    bool operator==(const Verdict&) const = default;
  };

  // budget_percent <= 0: takes nothing away. `hooks_part`: what hooks alone may take.
  explicit Governor(double budget_percent, double hooks_part = 1)
      : budget_(budget_percent / 100), hooks_part_(hooks_part) {}

  // From now on it is a watch of an attached job, which begins.
  void BeginWatch();
  void set_hooks_part(double part) {
    hooks_part_ = part;
    least_.Forget();
  }

  // Totals so far: time in hooks, cost of GPU tracing. Call it a few times a second.
  Verdict Update(uint64_t now_ns, uint64_t hooks_ns, uint64_t gpu_ns);

  // The cost of hooks is held in another way (step_share.h): no detail is taken away.
  void set_keep_detail(bool keep) { keep_detail_ = keep; }
  uint32_t highest() const { return highest_; }
  // Whether the GPU is traced now; say so before Update().
  void set_traced(bool traced) { traced_ = traced; }
  void WindowEnded() { window_ended_ = true; }
  // See LeastDetail; before Update(), too.
  void SetSteps(const LeastDetail::Steps& steps) { least_.SetSteps(steps); }
  // Hooks alone take more than their part of the budget at the least detail, and a
  // balance of theirs is used up, too: what tracing costs does not count.
  bool IsSpent() const;
  // Of all time, what hooks took of the first steps of a watch, where that is so far
  // over their part that no other way is tried; else 0.
  double FarOver() const;

 private:
  void Pay(uint64_t elapsed_ns, double hooks_ns, double gpu_ns);
  // Returns what has turned out to be no steps.
  HooksLook AddLook(const HooksLook& look, double gpu_ns);
  void PayHooks(double elapsed_ns, double hooks_ns);
  void JudgeHooks(const HooksLook& look);
  // What they took with more detail, or early in a watch, is no reason later. From here
  // on they have so much saved up, of the budget.
  void ForgiveHooks(uint64_t worth_ns);
  bool GpuIsLargerPart() const { return recent_gpu_ns_ > recent_hooks_ns_; }

  const double budget_;  // of time
  double hooks_part_;
  bool attached_ = false;
  bool early_ = false;  // in a watch
  uint64_t early_until_ns_ = 0;
  bool traced_ = false, was_traced_ = false;  // now, and at the update before
  uint64_t last_ns_ = 0, last_hooks_ns_ = 0, last_gpu_ns_ = 0;
  HooksLook look_;         // the window that goes on
  HooksLook traced_look_;  // says nothing about the others
  double balance_ns_ = 0;
  double hooks_balance_ns_ = 0;   // of their part
  double detail_balance_ns_ = 0;  // the same, but nothing is forgiven
  double recent_hooks_ns_ = 0, recent_gpu_ns_ = 0;  // fade within kCreditNs
  double gpu_since_release_ns_ = 0;
  double release_at_ns_ = 0;  // balance at which a hold ends

  bool keep_detail_ = false;
  Verdict verdict_;
  uint32_t highest_ = 0;
  int calm_ = 0;
  LeastDetail least_;
  FirstSteps first_steps_;     // of a watch
  bool window_ended_ = false;  // the first one
};

}  // namespace lull::relay
