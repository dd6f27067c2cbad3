// Control steps: what a step takes without lull, in the very job that is measured.
//
//   step    n-2      n-1       n        n+1
//        recorded recorded | control | recorded ...   of each N steps one, drawn
//
// In a control step hooks do what they do in a process that was put to sleep
// (abi::Armed): they call the original. Those of device memory record all the same:
// they are rare, and dear anyway. The step itself is recorded, with the time in which
// hooks rested. A step is drawn by its number alone, so that ranks that step together
// rest together. There is none while the GPU is traced, and no tracing begins in one.
//
// Where the job is to hold its budget by them (daemon/relay/control/step_share.h), most
// steps are control steps, and a few are recorded.
//
// A step that goes on for much longer than the one before (an evaluation, the end of
// the training) is cut off by the relay, which tells of the rest itself:
// daemon/relay/read/target_control.h.
#pragma once

#include <cstdint>

#include "preload/abi/segment.h"

namespace lull {

// Whether step `number`, the first is 1, is one: of each `one_in` steps one, whose
// place is hashed; 0: none. With `halvings` all but one of each 2^`halvings` steps are,
// in place of that; the steps that are left by more halvings are among those that are
// left by fewer, so that ranks have common ones. Not the first steps, which set up more
// than they train. Pure.
bool is_control_step(uint64_t number, uint32_t one_in, uint32_t halvings);

// The segment, if a control step goes on in this process. Until control_step_end()
// recording_segment() is null.
char* control_step_segment();

struct Rested {
  uint64_t ns;  // of the step, from its start on; 0: it was no control step
  bool told;    // by the relay, which has cut it off
};

// At the beginning of step `number`, where the one before took `length_ns` and hooks
// rested in it for so long; by the thread that ends steps, and last of all that it
// does.
void control_step_begin(char* segment, uint64_t number, uint64_t length_ns,
                        Rested before, uint64_t now_ns);

// At the end of a step that began at `start_ns`. Hooks record again from here.
Rested control_step_end(char* segment, uint64_t start_ns, uint64_t now_ns);

// Grows with each control step that has ended: what was known before it may have
// changed unseen.
inline uint32_t control_steps_ended(char* segment) {
  return abi::SegmentView(segment).control().control_ended.load(
      std::memory_order_relaxed);
}

// Whether hooks have rested since then, in a control step.
inline bool rested_since(char* segment, uint64_t time_ns) {
  return abi::SegmentView(segment).control().control_until_ns.load(
             std::memory_order_relaxed) >= time_ns;
}

}  // namespace lull
