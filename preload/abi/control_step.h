// How a control step ends (states.h, preload/steps/control_step.h).
#pragma once

#include "preload/abi/segment.h"

namespace lull::abi {

// Ends a control step: whoever finds it going on, the shim at the end of the step or
// the relay, says when it ended and wakes hooks up. Meanwhile they rest on.
inline bool begin_to_wake(ControlBlock& control) {
  uint32_t armed = kControlStep;
  return control.armed.compare_exchange_strong(armed, kControlStepEnds,
                                               std::memory_order_acq_rel);
}
inline void wake(ControlBlock& control, uint64_t now_ns) {
  control.control_until_ns.store(now_ns, std::memory_order_relaxed);
  control.control_ended.fetch_add(1, std::memory_order_relaxed);
  uint32_t armed = kControlStepEnds;  // unless it was put to sleep
  control.armed.compare_exchange_strong(armed, kArmed, std::memory_order_acq_rel);
}

}  // namespace lull::abi
