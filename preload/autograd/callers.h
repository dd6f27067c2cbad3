// Who is inside of backward(): the engine's own threads have no frames that lead to it.
//
// A thread tells when it goes into torch::autograd::Engine::execute and when it comes
// back. Where an exception leaves by another way, its word stays until the thread goes
// in again. Such a word never makes an answer wrong: of two threads that seem to be
// inside neither is the only one.
//
// Any number of threads, no locks, no memory but its own.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/event.h"

namespace lull {

// What a thread must remember of itself. All zero at its start.
struct ThreadBackward {
  uint32_t place;   // among the callers, + 1; 0: it has none
  uintptr_t frame;  // of the outermost call that holds the place
};

class BackwardCallers {
 public:
  // More threads than that inside at once have no place, and nobody is the only one.
  static constexpr uint32_t kMost = 16;

  struct Entry {
    uint32_t place;
    uint64_t before;  // of a call around this one
  };

  // frame: of the call that is under way. stack: of its Python frames, interned in
  // `generation`; 0 where that is not known, or nothing is recorded (generation 0).
  Entry enter(uint32_t generation, abi::Ref stack, uintptr_t frame,
              ThreadBackward* thread);
  void leave(const Entry& entry, ThreadBackward* thread);

  // The stack of the one thread that is inside; 0: there are none or several, or that
  // one's is not known in this generation.
  abi::Ref only(uint32_t generation) const;

 private:
  // generation << 32 | stack << 1 | 1; 0: free.
  std::atomic<uint64_t> words_[kMost];
  std::atomic<uint32_t> unplaced_;
};

}  // namespace lull
