#include "preload/cupti/schedule.h"

namespace lull::cupti {

Planned plan_step(const Schedule& schedule, uint64_t step) {
  uint64_t cycle = uint64_t{schedule.wait} + schedule.warmup + schedule.active;
  if (cycle == schedule.wait || step < schedule.skip_first) {
    return {abi::TracingState::kOff, 0};
  }
  step -= schedule.skip_first;
  auto window = static_cast<uint32_t>(step / cycle);
  uint64_t position = step % cycle;
  bool over = schedule.repeat > 0 && window >= schedule.repeat;
  if (over || position < schedule.wait) return {abi::TracingState::kOff, window};
  bool warm = position - schedule.wait < schedule.warmup;
  return {warm ? abi::TracingState::kWarmUp : abi::TracingState::kActive, window};
}

Schedule schedule_of(const abi::ControlBlock& control) {
  auto read = [](const std::atomic<uint32_t>& field) {
    return field.load(std::memory_order_relaxed);
  };
  return {read(control.gpu_skip_first), read(control.gpu_wait),
          read(control.gpu_warmup), read(control.gpu_active), read(control.gpu_repeat)};
}

}  // namespace lull::cupti
