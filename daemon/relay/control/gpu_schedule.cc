#include "daemon/relay/control/gpu_schedule.h"

#include <algorithm>

namespace lull::relay {

using abi::TracingState;

void GpuSchedule::StepSeen(uint64_t duration_ns) {
  step_seen_ = true;
  longest_step_ns_ = std::max(longest_step_ns_, std::min(duration_ns, kLongestStepNs));
}

GpuSchedule::Verdict GpuSchedule::Update(uint64_t now_ns, uint64_t gpu_calls,
                                         bool hold) {
  if (plan_.mode != lull::v1::GPU_MODE_WINDOW) return {};
  if (gpu_calls == 0) return {plan_.always_by_clock, TracingState::kOff};
  if (first_call_ns_ == 0) {
    first_call_ns_ = last_sign_ns_ = now_ns;
    calls_at_sign_ = gpu_calls;
  }
  if (!ByClock(now_ns, gpu_calls)) return {};
  if (clock_->origin_ns == 0) clock_->origin_ns = first_call_ns_;
  return {true, StateAt(now_ns, hold)};
}

bool GpuSchedule::ByClock(uint64_t now_ns, uint64_t gpu_calls) {
  if (plan_.always_by_clock) return true;
  if (step_seen_) {
    step_seen_ = by_clock_ = joined_ = false;
    last_sign_ns_ = now_ns;
    calls_at_sign_ = gpu_calls;
  }
  uint64_t patience = std::max(kPatienceNs, kPatienceSteps * longest_step_ns_);
  // A process that does nothing on the GPU meanwhile has nothing to trace.
  by_clock_ =
      by_clock_ || (now_ns - last_sign_ns_ > patience && gpu_calls > calls_at_sign_);
  return by_clock_;
}

TracingState GpuSchedule::StateAt(uint64_t now_ns, bool hold) {
  const GpuPlan::Clock& times = plan_.clock;
  uint64_t begin_ns = clock_->origin_ns + times.skip_first_ns;
  if (now_ns < begin_ns) return TracingState::kOff;
  uint64_t untraced_ns = times.wait_ns + times.warmup_ns;
  uint64_t period_ns = untraced_ns + times.active_ns;
  uint64_t cycle = (now_ns - begin_ns) / period_ns;
  uint64_t phase_ns = (now_ns - begin_ns) % period_ns;
  if (!joined_) {
    joined_ = true;
    // Not into the middle of a window.
    bool too_late = phase_ns >= times.wait_ns && times.wait_ns > 0;
    first_cycle_ = next_cycle_ = cycle + (too_late ? 1 : 0);
  }
  if (hold) next_cycle_ = std::max(next_cycle_, cycle + 1);
  if (cycle < next_cycle_) return TracingState::kOff;
  if (plan_.repeat != 0 && cycle - first_cycle_ >= plan_.repeat) {
    return TracingState::kOff;
  }
  if (phase_ns < times.wait_ns) return TracingState::kOff;
  return phase_ns < untraced_ns ? TracingState::kWarmUp : TracingState::kActive;
}

}  // namespace lull::relay
