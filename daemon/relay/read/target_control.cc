#include "daemon/relay/read/target_control.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/event_views.h"
#include "daemon/base/logging.h"
#include "daemon/relay/options.h"
#include "preload/abi/control_step.h"

namespace lull::relay {
namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;
constexpr uint64_t kLongestEndNs = 1'000'000'000;

// Windows are paid from the same budget. What they are to have at least, and what they
// have once steps are sampled.
double PartOfHooks(const GpuPlan& plan) {
  return plan.mode == v1::GPU_MODE_HOST ? 1 : 0.8;
}
double PartOfRecording(const GpuPlan& plan) {
  return plan.mode == v1::GPU_MODE_HOST ? 1 : 0.5;
}

}  // namespace

TargetControl::TargetControl(const SegmentReader& segment,
                             const lull::v1::JobSettings& settings, const GpuPlan& plan,
                             std::shared_ptr<GpuClock> clock, uint32_t pid,
                             bool attached)
    : segment_(segment),
      pid_(pid),
      begins_watch_(attached),
      governor_(OverheadBudgetPercent(settings), PartOfHooks(plan)),
      budget_percent_(OverheadBudgetPercent(settings)),
      share_budget_percent_(budget_percent_ * PartOfRecording(plan)),
      may_share_(!settings.all_steps()),
      asks_for_share_(settings.sample_steps()),
      asked_control_steps_(settings.control_steps()),
      gpu_clock_(clock != nullptr ? std::move(clock) : std::make_shared<GpuClock>()),
      gpu_schedule_(std::in_place, plan, gpu_clock_.get()) {
  abi::ControlBlock& control = segment_.control();
#define LULL_SET(setting, by_default)                                              \
  control.setting.store(settings.setting() != 0 ? settings.setting() : by_default, \
                        kRelaxed);
  LULL_CONTROL_SETTINGS(LULL_SET)
#undef LULL_SET
  control.late_launch_ns.store(abi::kDefaultLateLaunchNs, kRelaxed);
  // As an earlier worker left it.
  gpu_hold_ = control.gpu_hold.load(kRelaxed) != 0;
  uint32_t halvings = control.recorded_halvings.load(kRelaxed);
  // A watch may be over before all of its steps have shown what they cost. Not of its
  // first steps (preload/steps/control_step.h).
  if (asks_for_share_ && attached && control.control_ended.load(kRelaxed) == 0) {
    halvings = std::max(halvings, StepShare::kHalvingsAtOnce);
    control.recorded_halvings.store(halvings, kRelaxed);
  }
  if (asks_for_share_ || halvings != 0) BeginStepShare(halvings);
  WriteGpuPlan(plan, &control);
}

void TargetControl::GoOnIfUnread(uint64_t now_ns) {
  if (!armed_ || WhyEnded(segment_) != abi::EndedBy::kUnread) return;
  // Pairs with the release in preload/ring/backing.cc: until then it is the shim that
  // writes there.
  if (segment_.control().armed.load(std::memory_order_acquire) != 0) return;
  armed_ = false;
  Arm(gpu_schedule_->plan(), now_ns);
}

void TargetControl::Arm(const GpuPlan& gpu, uint64_t now_ns) {
  const abi::EndedBy ended = WhyEnded(segment_);
  if (ended != abi::EndedBy{} && ended != abi::EndedBy::kUnread) return;
  abi::ControlBlock& control = segment_.control();
  bool afresh = !armed_ || gpu_schedule_->plan() != gpu;
  if (afresh) CutControlStep(now_ns);
  if (afresh) {
    governor_.set_hooks_part(PartOfHooks(gpu));
    share_budget_percent_ = budget_percent_ * PartOfRecording(gpu);
    // What it was needed for was another plan's, or is long ago.
    if (step_share_ && !asks_for_share_) EndStepShare();
    if (step_share_) BeginStepShare(step_share_->halvings());
  }
  if (begins_watch_) governor_.BeginWatch();
  begins_watch_ = false;
  armed_ = true;
  if (afresh) gpu_schedule_.emplace(gpu, gpu_clock_.get());
  WriteGpuPlan(gpu, &control);
  DriveGpu(now_ns);
  // Pairs with the acquire in preload/cupti/tracer.cc: the plan is written.
  if (afresh) control.arming.fetch_add(1, std::memory_order_release);
  uint32_t asleep = abi::kAsleep;  // and not in a control step
  control.armed.compare_exchange_strong(asleep, abi::kArmed, std::memory_order_acq_rel);
}

void TargetControl::Disarm(uint64_t now_ns) {
  armed_ = false;
  abi::ControlBlock& control = segment_.control();
  // Not again: since when it sleeps stays as it is.
  CutControlStep(now_ns);
  if (control.armed.load(kRelaxed) != abi::kAsleep) PutToSleep(now_ns, &control);
}

void TargetControl::CutLongControlStep(uint64_t now_ns) {
  abi::ControlBlock& control = segment_.control();
  const uint32_t armed = control.armed.load(std::memory_order_acquire);
  if (armed == abi::kControlStep && now_ns > control.control_until_ns.load(kRelaxed)) {
    CutControlStep(now_ns);
  }
  // Whoever ends one is done in a moment, unless it was killed in it: an earlier
  // worker.
  if (armed != abi::kControlStepEnds) {
    ending_since_ns_.reset();
  } else if (!ending_since_ns_) {
    ending_since_ns_ = now_ns;
  } else if (now_ns > *ending_since_ns_ + kLongestEndNs) {
    TellRest(now_ns);
  }
}

void TargetControl::CutControlStep(uint64_t now_ns) {
  abi::ControlBlock& control = segment_.control();
  if (abi::begin_to_wake(control)) TellRest(now_ns);
}

void TargetControl::TellRest(uint64_t now_ns) {
  abi::ControlBlock& control = segment_.control();
  const uint64_t since = control.control_since_ns.load(kRelaxed);
  control.control_cut.fetch_add(1, std::memory_order_release);
  abi::wake(control, now_ns);
  if (since == 0 || since >= now_ns) return;  // no word of ours
  abi::Event rest = {};
  rest.type = abi::EventType::kStep;
  rest.start_ns = since;
  rest.duration_ns = now_ns - since;
  StepView{rest}.set_rested_ns(rest.duration_ns);
  rests_.push_back(rest);
}

void TargetControl::StepSeen(const steps::TimedStep& step) {
  gpu_schedule_->StepSeen(step.end_ns - step.start_ns);
  wall_cost_.AddStep(step);
  pace_.AddStep(step);
  if (!step_share_) return;
  step_share_->AddStep(step);
  if (step.rested_ns == 0) return;
  share_was_needed_ |= !asks_for_share_;
  if (first_sampled_step_ == 0) first_sampled_step_ = step.number;
}

void TargetControl::TracingSeen(uint64_t time_ns, abi::TracingState state) {
  wall_cost_.AddTracing(time_ns, state);
  const bool active = state == abi::TracingState::kActive;
  if (std::exchange(in_window_, active) && !active) governor_.WindowEnded();
}

void TargetControl::Govern(uint64_t now_ns, uint64_t hooks_ns) {
  const uint64_t gpu_ns =
      wall_cost_.tracing().WithOwn(Total(segment_.header().gpu_self_ns));
  governor_.set_keep_detail(GovernSteps(now_ns, hooks_ns));
  governor_.set_traced(segment_.header().cupti_state.load(kRelaxed) ==
                       static_cast<uint32_t>(abi::CuptiState::kTracing));
  governor_.SetSteps({.length_ns = now_ns < pace_.NextUntil() ? pace_.length_ns() : 0,
                      .end_ns = pace_.end_ns(),
                      .far_longer = pace_.far_longer()});
  Governor::Verdict verdict = governor_.Update(now_ns, hooks_ns, gpu_ns);
  ShareIfNeeded(now_ns);  // what was no step is paid back by now
  segment_.control().thinning.store(verdict.thinning, kRelaxed);
  if (verdict.gpu_hold == gpu_hold_) return;
  gpu_hold_ = verdict.gpu_hold;
  segment_.control().gpu_hold.store(gpu_hold_ ? 1 : 0, kRelaxed);
  LogInfo(absl::StrCat("GPU tracing of process ", pid_,
                       gpu_hold_ ? " is held: the overhead budget is spent"
                                 : " goes on: it is within the overhead budget"));
}

void TargetControl::ShareIfNeeded(uint64_t now_ns) {
  if (step_share_ || !NeedsStepShare(now_ns)) return;
  const double far_over = governor_.FarOver();
  BeginStepShare(far_over > 0
                     ? StepShare::HalvingsAtOnce(far_over, share_budget_percent_)
                     : StepShare::kHalvingsAtOnce);
  segment_.control().recorded_halvings.store(step_share_->halvings(), kRelaxed);
  wall_cost_.RecordingChanges();
  LogInfo(absl::StrCat("process ", pid_, " is ",
                       far_over > 0 ? "far over its overhead budget"
                                    : "over its overhead budget with the least detail",
                       ": of its steps some are to be recorded, whole"));
}

bool TargetControl::GovernSteps(uint64_t now_ns, uint64_t hooks_ns) {
  if (!step_share_) return false;
  const uint32_t before = step_share_->halvings();
  step_share_->Update(now_ns, wall_cost_.recording().WithOwn(hooks_ns));
  const uint32_t halvings = step_share_->halvings();
  segment_.control().recorded_halvings.store(halvings, kRelaxed);
  if (halvings != before) {
    LogInfo(absl::StrCat("of process ", pid_, " one step in ", 1 << halvings,
                         " is recorded, to hold the overhead budget"));
  }
  return step_share_->InCharge(now_ns);
}

void TargetControl::BeginStepShare(uint32_t halvings) {
  step_share_.emplace(share_budget_percent_, halvings);
  std::atomic<uint32_t>& one_in = segment_.control().control_steps;
  const uint32_t asked = one_in.load(kRelaxed);
  if (asked == 0 || asked > StepShare::kControlOneIn) {
    one_in.store(StepShare::kControlOneIn, kRelaxed);
  }
}

void TargetControl::EndStepShare() {
  step_share_.reset();
  wall_cost_.RecordingChanges();
  segment_.control().recorded_halvings.store(0, kRelaxed);
  segment_.control().control_steps.store(asked_control_steps_, kRelaxed);
}

void TargetControl::DriveGpu(uint64_t now_ns) {
  if (!armed_) return;
  GpuSchedule::Verdict verdict =
      gpu_schedule_->Update(now_ns, segment_.GpuCalls(), gpu_hold_);
  abi::ControlBlock& control = segment_.control();
  // The state first: it is in force from the moment that gpu_by_clock is 1.
  control.gpu_clock_state.store(static_cast<uint32_t>(verdict.state), kRelaxed);
  control.gpu_by_clock.store(verdict.by_clock ? 1 : 0, std::memory_order_release);
}

}  // namespace lull::relay
