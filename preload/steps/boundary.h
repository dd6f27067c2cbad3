// Where one training step ends and the next begins, whoever found out.
#pragma once

#include "preload/abi/event.h"

namespace lull {

// Whether the boundary after this one will be noticed by a process that records nothing
// meanwhile (control_step.h).
enum class Seen { kAlways, kWhileRecording };

// Ends a step now: records it, from the boundary before to this one, with the calling
// thread's Python stack. Nobody knows when the first one began, as what came before is
// the program's start: it is recorded with a duration of 0. Any thread, under its
// Guard; steps that two threads end at the same moment are one.
void step_boundary(abi::StepSource source, Seen seen = Seen::kAlways);

}  // namespace lull
