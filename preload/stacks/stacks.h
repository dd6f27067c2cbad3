// Stacks of the calling thread, interned: a stack that was seen before is one
// integer. None of these takes a lock, calls Python, or fails: 0 means "no stack"
// (no interpreter here, arena full, library missing), and the reason is counted
// in the segment. Call them under a Guard. They may allocate only in the first
// call of a thread (libunwind's cache); python_* never do.
#pragma once

#include "preload/abi/segment.h"

namespace lull {

// The whole Python stack of this thread. 30 frames: aim at 0.3 us warm.
abi::Ref python_stack(char* segment);

// The innermost Python frame alone (a stack of depth 1).
abi::Ref python_tip(char* segment);

// The native stack of this thread, without our own frames; `skip` more frames
// are left out. 0 when libunwind was not found. 40 frames: aim at 1 us warm.
abi::Ref native_stack(char* segment, int skip);
// The same, also when the governor said to do without.
abi::Ref unthinned_native_stack(char* segment, int skip);

// Cold, when recording starts: finds libunwind and CPython's tables.
void stacks_load();  // its slow half, once: libunwind
void stacks_prepare(char* segment);

}  // namespace lull
