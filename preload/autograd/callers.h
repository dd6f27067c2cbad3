// Who is inside of backward(): the engine's own threads have no frames that lead to it.
//
// A thread tells when it goes into torch::autograd::Engine::execute and when it comes
// back, or is thrown out. What it calls from within is the work of the outermost call:
// the engine goes on with that one's nodes meanwhile.
//
// Any number of threads, no locks, no memory but its own. A fork child inherits what
// its parent's threads wrote, and has no use for it: where the engine has threads of
// its own PyTorch refuses to go backward in a child of a process that did.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/event.h"
#include "preload/autograd/node.h"

namespace lull {

// What a thread must remember of itself. All zero outside of backward().
struct ThreadBackward {
  uint32_t place;  // among the callers, + 1; 0: it has none
  uint32_t depth;  // calls that are under way
};

class BackwardCallers {
 public:
  // More threads than that inside at once have no place, and nobody is the only one.
  static constexpr uint32_t kMost = 16;

  // stack: of the caller's Python frames, interned in `generation`; 0 where that is not
  // known, or nothing is recorded (generation 0). came_late: threads that are inside
  // may have gone in unseen.
  void enter(uint32_t generation, abi::Ref stack, bool came_late,
             ThreadBackward* thread);
  // Once for each enter().
  void leave(ThreadBackward* thread);

  // The stack of the one thread that is inside; 0: there are none or several, or that
  // one's is not known in this generation, or `task` (graph_task(), or kNoTask) is
  // older than its call: what an attach found under way, or an exception has left.
  abi::Ref only(uint32_t generation, int32_t task = kNoTask);

 private:
  // generation << 32 | stack << 1 | 1; 0: free.
  std::atomic<uint64_t> words_[kMost];
  // The newest task that had been seen when each went in.
  std::atomic<int32_t> before_[kMost];
  std::atomic<uint32_t> unplaced_;
  // generation << 32 | the newest task that was seen in it.
  std::atomic<uint64_t> newest_;
};

}  // namespace lull
