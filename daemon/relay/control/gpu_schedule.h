// Drives the windows of one process by the clock, where it shows no training steps.
// Pure: time comes from the caller.
//
//   steps (the shim counts them)
//     | the process does GPU work and has shown no step for kPatienceNs, or for
//     | kPatienceSteps times the longest step that it has shown
//     v
//   clock (this class says what is to be done)
//     | a step
//     v
//   steps
//
// All processes of a job share one GpuClock, so that their windows fall together and
// one rank's wait can be told from another's work.
#pragma once

#include <cstdint>

#include "daemon/relay/control/gpu_plan.h"

namespace lull::relay {

// When the first window's cycle of the job began; 0: no process needed it yet.
struct GpuClock {
  uint64_t origin_ns = 0;
};

class GpuSchedule {
 public:
  static constexpr uint64_t kPatienceNs = 3'000'000'000;
  static constexpr uint64_t kPatienceSteps = 10;
  // A step that claims to have taken longer than this counts as this long.
  static constexpr uint64_t kLongestStepNs = 3'600'000'000'000;

  struct Verdict {
    bool by_clock = false;
    abi::TracingState state = abi::TracingState::kOff;  // where by_clock

    bool operator==(const Verdict&) const = default;
  };

  // `clock` must outlive this.
  GpuSchedule(const GpuPlan& plan, GpuClock* clock) : plan_(plan), clock_(clock) {}

  const GpuPlan& plan() const { return plan_; }

  // The process has shown a step.
  void StepSeen(uint64_t duration_ns);

  // gpu_calls: GPU calls of the process so far. hold: the budget is spent; a window
  // that was held up is left out as a whole. Call it a few times in each phase.
  Verdict Update(uint64_t now_ns, uint64_t gpu_calls, bool hold);

 private:
  bool ByClock(uint64_t now_ns, uint64_t gpu_calls);
  abi::TracingState StateAt(uint64_t now_ns, bool hold);

  const GpuPlan plan_;
  GpuClock* const clock_;
  bool step_seen_ = false;  // since the last Update()
  uint64_t longest_step_ns_ = 0;
  uint64_t first_call_ns_ = 0;  // as Update() was told of it; 0: not yet
  uint64_t last_sign_ns_ = 0;   // of steps: the last one, or the first GPU call
  uint64_t calls_at_sign_ = 0;
  bool by_clock_ = false;
  bool joined_ = false;
  uint64_t first_cycle_ = 0;  // in which this process went by the clock
  uint64_t next_cycle_ = 0;   // the first one that is not left out
};

}  // namespace lull::relay
