// When to trace, in steps: the schedule of torch.profiler. Pure.
//
//   step   0 .. skip_first-1 | wait | warmup | active | wait | warmup | active | ...
//               off            off    warm     on       `repeat` times; 0: for ever
#pragma once

#include "preload/abi/segment.h"

namespace lull::cupti {

struct Schedule {
  uint32_t skip_first;
  uint32_t wait;
  uint32_t warmup;
  uint32_t active;
  uint32_t repeat;
};

inline bool is_on(abi::TracingState state) {
  return state == abi::TracingState::kWarmUp || state == abi::TracingState::kActive;
}

struct Planned {
  abi::TracingState state;  // kOff, kWarmUp or kActive
  uint32_t window;          // counts from 0; of an off stretch, the window after it
};

// What the tracer is to do now, and why.
struct Wanted {
  abi::TracingState state;  // kOff, kWarmUp or kActive
  abi::TracingReason reason;
  uint32_t window;
};

// What `step` (0 is the first one) is to be. A schedule without warmup and active
// steps is off.
Planned plan_step(const Schedule& schedule, uint64_t step);

Schedule schedule_of(const abi::ControlBlock& control);

}  // namespace lull::cupti
