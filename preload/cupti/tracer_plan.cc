// When the tracer traces: by the plan in the control block, and by what the device has
// come to.
#include <algorithm>

#include "preload/cupti/schedule.h"
#include "preload/cupti/tracer.h"

namespace lull::cupti {
namespace {

// Where the device is behind the host: how often to ask whether it has caught up, and
// for how long the active steps of a window wait for that.
constexpr uint64_t kBehindPeriodNs = 5'000'000;
constexpr uint64_t kBehindPatienceNs = 10'000'000'000;
// What is longer ago than this may have been judged by what was known at the last
// flush.
constexpr uint64_t kBehindKnownNs = 3'000'000'000;
// Where steps are not counted: what is launched in this time shows all streams.
constexpr uint64_t kRoundNs = 100'000'000;

// Changes when the relay has passed on what it read.
uint64_t passed_on_events(char* segment) {
  abi::SegmentView view(segment);
  uint64_t events = 0;
  uint32_t used = view.header().rings_used.load(std::memory_order_relaxed);
  for (uint32_t i = 0; i < used && i < abi::kMaxRings; ++i) {
    events += view.ring(i).tail.load(std::memory_order_relaxed);
  }
  return events;
}

}  // namespace

Wanted Tracer::decide() const {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  using abi::TracingReason;
  using abi::TracingState;
  if (control.armed.load(std::memory_order_relaxed) == 0) {
    return {TracingState::kOff, TracingReason::kDisarmed, window_};
  }
  auto mode =
      static_cast<abi::GpuMode>(control.gpu_mode.load(std::memory_order_relaxed));
  const bool rests = control.armed.load(std::memory_order_relaxed) == abi::kControlStep;
  if (mode == abi::GpuMode::kHost || rests) {
    return {TracingState::kOff, TracingReason::kSchedule, 0};
  }
  if (control.gpu_hold.load(std::memory_order_relaxed) != 0) {
    return {TracingState::kOff, TracingReason::kBudget, window_};
  }
  uint32_t current = phase_ == Phase::kOn ? window_ : windows_begun_;
  if (mode == abi::GpuMode::kContinuous) {
    return {TracingState::kActive, TracingReason::kSchedule, current};
  }
  if (control.gpu_by_clock.load(std::memory_order_relaxed) != 0) {
    auto state = static_cast<TracingState>(
        control.gpu_clock_state.load(std::memory_order_relaxed));
    return {is_on(state) ? state : TracingState::kOff, TracingReason::kSchedule,
            current};
  }
  Planned planned = plan_step(schedule_of(control), steps_ - waiting_.steps_held);
  return {planned.state, TracingReason::kSchedule, first_window_ + planned.window};
}

// A new arming begins with a plan of its own: steps count from here.
void Tracer::take_arming() {
  uint32_t arming =
      abi::SegmentView(segment_).control().arming.load(std::memory_order_acquire);
  if (arming == arming_) return;
  arming_ = arming;
  slept_ = true;
  steps_ = waiting_.steps_held = 0;
  first_window_ = windows_begun_;
}

// When a stop takes effect. A sleeping process may make its next call much later than
// it was put to sleep, and what the device does meanwhile is nobody's business.
uint64_t Tracer::end_of_tracing(uint64_t now) const {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  if (control.armed.load(std::memory_order_acquire) != 0) return now;
  uint64_t asleep = control.asleep_since_ns.load(std::memory_order_relaxed);
  if (asleep < started_ns_) return started_ns_;
  return asleep < now ? asleep : now;
}

// By the clock the relay ends a window. What the window has waited for the device comes
// after that, so that its active time is as long as planned.
Wanted Tracer::prolonged(const Wanted& wanted, uint64_t now) {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  bool is_over = phase_ == Phase::kOn && wanted.state == abi::TracingState::kOff &&
                 wanted.reason == abi::TracingReason::kSchedule &&
                 control.gpu_by_clock.load(std::memory_order_relaxed) != 0 &&
                 (is_behind() || told_ == abi::TracingState::kActive);
  if (!is_over) return wanted;
  if (waiting_.clock_end_ns == 0) waiting_.clock_end_ns = now;
  bool goes_on = is_behind() ? now < started_ns_ + kBehindPatienceNs
                             : now < waiting_.clock_end_ns + waiting_.waited_ns;
  if (!goes_on) return wanted;
  return {abi::TracingState::kActive, abi::TracingReason::kSchedule, window_};
}

// Time counts only from when the device works on what this window launched (backlog.h).
void Tracer::begin_active(uint64_t now) {
  if (is_behind()) return catch_up(now, now > last_flush_ns_ + kBehindPeriodNs);
  waiting_.begin(now);
  catch_up(now, true);
}

// A whole step has been traced, or what stands for one.
bool Tracer::round_is_over(uint64_t now) const {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  auto mode =
      static_cast<abi::GpuMode>(control.gpu_mode.load(std::memory_order_relaxed));
  bool by_steps = mode == abi::GpuMode::kWindow &&
                  control.gpu_by_clock.load(std::memory_order_relaxed) == 0;
  return by_steps ? waiting_.boundaries_to_go == 0 : now >= started_ns_ + kRoundNs;
}

// What has ended is known by a flush: one at the end of the warm-up, and where the
// device is behind one now and then.
void Tracer::catch_up(uint64_t now, bool look) {
  if (!is_behind() || !look) return;
  // Before, no flush tells anything, and what it returns would not count.
  if (backlog_.needs_round() && !round_is_over(now)) return;
  uint64_t known = last_flush_ns_;
  // CUPTI may have returned records by itself. What the relay has passed on counts as
  // warmed up.
  uint64_t passed_on = passed_on_ns_.load(std::memory_order_relaxed);
  const uint64_t events = passed_on_events(segment_);
  flush(kFlushCompleted, kFlushPeriodNs);
  if (round_is_over(now)) backlog_.end_round(now);
  uint64_t told = pool_.all_decoded() ? pool_.oldest_lent() : 0;
  uint64_t since = backlog_.caught_up_ns(told);
  if (since == 0) return;
  // The relay may have come by meanwhile: much at once it passes on at once.
  if (passed_on_events(segment_) != events) {
    passed_on = passed_on_ns_.load(std::memory_order_relaxed);
  }
  since = std::max({since, waiting_.counts_from_ns, passed_on});
  if (since + kBehindKnownNs < known) since = known - kBehindKnownNs;
  // A process may have been put to sleep while it waited for the device.
  if (since >= end_of_tracing(std::max(now, since + 1))) return;
  waiting_.end(since);
  let_cupti_flush();
  tell(abi::TracingState::kActive, abi::TracingReason::kSchedule, since);
}

// Steps that have begun. While the device is behind they do not count.
void Tracer::take_steps(uint64_t now) {
  uint64_t begun = boundaries_.exchange(0, std::memory_order_relaxed);
  if (begun == 0) return;
  steps_ += begun;
  if (waiting_.boundaries_to_go > 0) --waiting_.boundaries_to_go;
  // Most devices are less than a step behind.
  bool first = waiting_.steps_waited++ == 0;
  catch_up(now, first || now > last_flush_ns_ + kBehindPeriodNs);
  if (is_behind() && now < started_ns_ + kBehindPatienceNs)
    waiting_.steps_held += begun;
}

}  // namespace lull::cupti
