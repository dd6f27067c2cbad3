// What the relay tells a target: whether it records, how much of it, and when the GPU
// is traced.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "daemon/relay/control/governor.h"
#include "daemon/relay/control/gpu_plan.h"
#include "daemon/relay/control/gpu_schedule.h"
#include "daemon/relay/control/pace.h"
#include "daemon/relay/control/step_share.h"
#include "daemon/relay/control/wall_cost.h"
#include "daemon/relay/read/segment_reader.h"
#include "events.pb.h"

namespace lull::relay {

// 0: it goes on recording.
inline abi::EndedBy WhyEnded(const SegmentReader& segment) {
  return static_cast<abi::EndedBy>(
      segment.header().ended.load(std::memory_order_relaxed));
}

class TargetControl {
 public:
  // Writes what no later word changes. `segment` must outlive it; `clock` may be null:
  // one of its own. `pid`: for the log.
  TargetControl(const SegmentReader& segment, const lull::v1::JobSettings& settings,
                const GpuPlan& plan, std::shared_ptr<GpuClock> clock, uint32_t pid,
                bool attached = false);

  // The process is to record from now on; also one that does so already, with a plan
  // that is new.
  void Arm(const GpuPlan& gpu, uint64_t now_ns);
  void Disarm(uint64_t now_ns);
  bool armed() const { return armed_; }
  // Wakes a process up that fell asleep because nobody read its rings: here is
  // somebody.
  void GoOnIfUnread(uint64_t now_ns);
  // Sets what the budget takes away. `hooks_ns`: what all hooks have taken so far.
  void Govern(uint64_t now_ns, uint64_t hooks_ns);
  // Sets the windows of GPU tracing where they go by the clock.
  void DriveGpu(uint64_t now_ns);
  // Cuts a control step off that has lasted for too long: what goes on is no step, and
  // is to be recorded. Call it often.
  void CutLongControlStep(uint64_t now_ns);
  // Cuts off whatever control step goes on.
  void CutControlStep(uint64_t now_ns);
  // The rests of those that were cut off, as steps of no source, until they are
  // forgotten: no step of the process tells them, as there may be no more.
  const std::vector<abi::Event>& rests() const { return rests_; }
  void ForgetRests(size_t count) {
    rests_.erase(rests_.begin(), rests_.begin() + static_cast<ptrdiff_t>(count));
  }
  // The process has shown a step.
  void StepSeen(const steps::TimedStep& step);
  void TracingSeen(uint64_t time_ns, abi::TracingState state);
  // abi::Thinning, so far.
  uint32_t highest_thinning() const {
    return share_was_needed_ ? uint32_t{abi::kThinSteps} : governor_.highest();
  }
  // ProcessCounters.first_sampled_step, as far as is known here.
  uint64_t first_sampled_step() const { return first_sampled_step_; }

 private:
  // Of a control step that somebody has begun to wake from; and wakes.
  void TellRest(uint64_t now_ns);
  // Of the hooks, where the budget is held by how many steps are recorded.
  bool GovernSteps(uint64_t now_ns, uint64_t hooks_ns);
  void ShareIfNeeded(uint64_t now_ns);
  void BeginStepShare(uint32_t halvings);
  // Nothing else has held the budget, and the process is in the middle of its steps.
  bool NeedsStepShare(uint64_t now_ns) const {
    return may_share_ && now_ns < pace_.NextUntil() &&
           (governor_.IsSpent() || governor_.FarOver() > 0);
  }
  // One that nobody asked for: all steps are recorded again.
  void EndStepShare();

  const SegmentReader& segment_;
  const uint32_t pid_;
  bool begins_watch_;  // when it is armed
  Governor governor_;
  WallCost wall_cost_;
  const double budget_percent_;
  double share_budget_percent_;
  const bool may_share_;       // unless the job is to record all
  const bool asks_for_share_;  // from the start on
  const uint32_t asked_control_steps_;
  std::optional<StepShare> step_share_;  // where the budget is held by that
  bool share_was_needed_ = false;        // unasked, and hooks have rested for it
  uint64_t first_sampled_step_ = 0;
  Pace pace_;
  std::shared_ptr<GpuClock> gpu_clock_;
  std::optional<GpuSchedule> gpu_schedule_;  // always one
  bool armed_ = true;
  bool gpu_hold_ = false;
  bool in_window_ = false;
  std::optional<uint64_t> ending_since_ns_;  // a control step
  std::vector<abi::Event> rests_;
};

}  // namespace lull::relay
