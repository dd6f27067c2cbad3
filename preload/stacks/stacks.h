// Stacks of the calling thread, interned: a stack that was seen before is one
// integer. None of these takes a lock, calls Python, or fails: 0 means "no stack"
// (no interpreter here, arena full, library missing), and the reason is counted
// in the segment. Call them under a Guard. They may allocate only in the first
// call of a thread (libunwind's cache); python_* never do.
#pragma once

#include <atomic>

#include "preload/abi/segment.h"

namespace lull {

// The whole Python stack of this thread. 30 frames: aim at 0.3 us warm. On a thread of
// PyTorch's engine that has none: what it works on (autograd/backward.h).
abi::Ref python_stack(char* segment);

// The innermost Python frame alone (a stack of depth 1); where there is none, the same.
abi::Ref python_tip(char* segment);

// The native stack of this thread, without our own frames; `skip` more frames
// are left out. 0 when libunwind was not found. 40 frames: aim at 1 us warm.
abi::Ref native_stack(char* segment, int skip);
// The same, also when the governor said to do without.
abi::Ref unthinned_native_stack(char* segment, int skip);

// Cold, when recording starts: finds CPython's tables. Any thread.
void stacks_prepare(char* segment);

// Loads libunwind, once. It asks the loader, so not on a hooked path: in the
// constructor, in a call that asks the loader itself, in a process of one thread. A
// thread in the middle of anything else may be waited for by one that has the loader.
void stacks_load();

// The same if recording has begun without it.
extern std::atomic<bool> g_stacks_wanted __attribute__((visibility("hidden")));
__attribute__((cold, noinline)) void stacks_load_late();
inline void stacks_load_if_wanted() {
  if (__builtin_expect(g_stacks_wanted.load(std::memory_order_relaxed), 0)) {
    stacks_load_late();
  }
}

}  // namespace lull
