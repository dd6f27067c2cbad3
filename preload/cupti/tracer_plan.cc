// When the tracer traces: by the plan in the control block, and by what the device has
// come to.
#include "preload/cupti/schedule.h"
#include "preload/cupti/tracer.h"

namespace lull::cupti {
namespace {

// Where the device is behind the host: how often to ask whether it has caught up, and
// for how long the active steps of a window wait for that.
constexpr uint64_t kBehindPeriodNs = 5'000'000;
constexpr uint64_t kBehindPatienceNs = 10'000'000'000;
// What is longer ago may have been judged.
constexpr uint64_t kBehindKnownNs = 3'000'000'000;

}  // namespace

Tracer::Wanted Tracer::decide() const {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  using abi::TracingReason;
  using abi::TracingState;
  if (control.armed.load(std::memory_order_relaxed) == 0) {
    return {TracingState::kOff, TracingReason::kDisarmed, window_};
  }
  auto mode =
      static_cast<abi::GpuMode>(control.gpu_mode.load(std::memory_order_relaxed));
  if (mode == abi::GpuMode::kHost) {
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
  // Another thread may have counted a step of a plan that has just begun anew.
  uint64_t steps = steps_.load(std::memory_order_relaxed);
  Planned planned = plan_step(schedule_of(control),
                              steps - (steps_held_ < steps ? steps_held_ : steps));
  return {planned.state, TracingReason::kSchedule, first_window_ + planned.window};
}

// A new arming begins with a plan of its own: steps count from here.
void Tracer::take_arming() {
  uint32_t arming =
      abi::SegmentView(segment_).control().arming.load(std::memory_order_acquire);
  if (arming == arming_) return;
  arming_ = arming;
  slept_ = true;
  steps_.store(0, std::memory_order_relaxed);
  steps_held_ = 0;
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

// Time counts only from when the device works on what this window launched (backlog.h).
void Tracer::begin_active(uint64_t now) {
  if (is_behind()) return catch_up(now, now > last_flush_ns_ + kBehindPeriodNs);
  behind_.store(true, std::memory_order_relaxed);
  counts_from_ns_ = now;
  catch_up(now, true);
}

// What has ended is known by a flush: one at the end of the warm-up, and where the
// device is behind one now and then.
void Tracer::catch_up(uint64_t now, bool look) {
  const abi::ControlBlock& control = abi::SegmentView(segment_).control();
  if (!is_behind() || !look || control.armed.load(std::memory_order_relaxed) == 0)
    return;
  flush(kFlushCompleted, kFlushPeriodNs);
  uint64_t since = backlog_.caught_up_ns();
  if (since == 0) return;
  behind_.store(false, std::memory_order_relaxed);
  if (since < counts_from_ns_) since = counts_from_ns_;
  if (since + kBehindKnownNs < now) since = now - kBehindKnownNs;
  tell(abi::TracingState::kActive, abi::TracingReason::kSchedule, since);
}

// A step begins. While the device is behind it does not count.
void Tracer::hold_step(uint64_t now) {
  catch_up(now, now > last_flush_ns_ + kBehindPeriodNs);
  if (is_behind() && now < started_ns_ + kBehindPatienceNs) ++steps_held_;
}

}  // namespace lull::cupti
