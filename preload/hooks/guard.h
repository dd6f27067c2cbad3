// Re-entrancy as a value: a hook holds a Guard while it and the original run.
//
// The outermost hook of a thread wins; hooked calls made below it (the runtime
// calls the driver, our own code calls libc) pass straight through. The guard
// remembers the frame of the hook that set it. When an exception, a longjmp or a
// thread cancellation unwinds past that hook, its destructor does not run; the
// next hook that is entered at the height of the remembered one, or above it,
// knows the mark for stale and takes over. So no unwinding ever blinds a thread.
#pragma once

#include <cstdint>

#include "preload/ring/writer.h"

namespace lull {

class Guard {
 public:
  // frame: __builtin_frame_address(0) of the hook itself.
  explicit Guard(void* frame) {
    uintptr_t here = reinterpret_cast<uintptr_t>(frame);
    uintptr_t mark = t_thread.guard;
    outermost_ = mark == 0 || here >= mark;  // the stack grows downwards
    if (outermost_) t_thread.guard = here;
  }
  ~Guard() {
    if (outermost_) t_thread.guard = 0;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  bool outermost() const { return outermost_; }

 private:
  bool outermost_;
};

}  // namespace lull
