// Re-entrancy as a value: a hook holds a Guard while it and the original run.
//
// The outermost hook of a thread wins; hooked calls made below it (the runtime calls
// the driver, a signal handler interrupts our own work) pass straight through. The mark
// that says so remembers the frame of the hook that set it, and what that hook is in.
//
// Exceptions, longjmp and coroutines leave a hook by another way than its end; its
// destructor does not run, and the mark stays. No mark blinds a thread:
//
//  * A hook that is entered at the height of the mark, or above it, knows it for stale;
//    but not where the mark is of our own work: nobody jumps out of that on purpose,
//    and a signal handler may run on a stack that lies above it.
//  * Nothing that is hooked is called by a wait of libc's, the only calls that programs
//    jump out of on purpose: a hook entered during one goes ahead. (A signal handler's
//    calls are recorded beside the wait that they interrupt.)
//  * CUDA calls what lies below it, a few times: whatever goes beyond ends the mark.
//
// Calls that a mark kept from being recorded, and that were no part of another one as
// far as can be told, are counted (SegmentHeader::reentered). No memory is read but the
// thread's own state: the frame of a stale mark may be unmapped, as the stack of a
// coroutine or of a signal handler can be.
#pragma once

#include <cstdint>

#include "preload/abi/segment.h"
#include "preload/entry/state.h"
#include "preload/ring/writer.h"

namespace lull {

// What a hook that is under way is in. The original of one layer calls those before it;
// from kLibrary on it is us who are at work, in the middle of an event perhaps.
enum class Layer : uint32_t {
  kWait,     // an original of libc's
  kDriver,   // an original of CUDA's, and so on
  kRuntime,  //
  kTorchReport,
  kTorch,
  kLibrary,  // CUPTI or Python, called by us or for another user
  kOwnWork,  // recording
};

// One word, since it is written twice by every hook: frames are aligned to 16 bytes, so
// the lowest bits are free for the layer, and for whether any call has passed below.
constexpr uintptr_t kMarkLayer = 7;
constexpr uintptr_t kMarkPassed = 8;
inline uintptr_t mark_of(void* frame, Layer layer) {
  return reinterpret_cast<uintptr_t>(frame) | static_cast<uintptr_t>(layer);
}
inline Layer layer_of(uintptr_t mark) { return static_cast<Layer>(mark & kMarkLayer); }
inline bool is_our_work(uintptr_t mark) { return layer_of(mark) >= Layer::kLibrary; }

class Guard {
 public:
  // frame: __builtin_frame_address(0) of the hook itself.
  Guard(void* frame, Layer layer)
      : outermost_(t_thread.mark == 0 || is_stale(mark_of(frame, layer))) {
    if (outermost_) t_thread.mark = mark_of(frame, layer);
  }
  ~Guard() {
    if (outermost_) t_thread.mark = 0;
  }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  bool outermost() const { return outermost_; }

  // The original has returned: from here on nothing may be recorded but by the holder.
  void own_work(void* frame) const {
    if (outermost_) t_thread.mark = mark_of(frame, Layer::kOwnWork);
  }

 private:
  // Calls that pass below one mark: of the layers that its own calls, how many of them
  // were counted at once, and calls of other layers. All are kept in one word.
  static constexpr uint32_t kMostBelow = 4096;
  static constexpr uint32_t kMostBeside = 8;
  static constexpr uint32_t kOneCounted = 1 << 13;
  static constexpr uint32_t kOneBeside = 1 << 26;

  static void count(uint32_t calls) {
    char* segment = recording_segment();
    if (calls == 0 || segment == nullptr) return;
    abi::SegmentView(segment).header().reentered.fetch_add(calls,
                                                           std::memory_order_relaxed);
  }

  // There is a mark, and a hook is entered that would leave this one.
  __attribute__((noinline)) static bool is_stale(uintptr_t entered) {
    ThreadState& thread = t_thread;
    if ((thread.mark & kMarkPassed) == 0) thread.passed = 0;
    Layer holder = layer_of(thread.mark);
    uint32_t below = thread.passed % kOneCounted;
    uint32_t counted = thread.passed % kOneBeside / kOneCounted;
    uint32_t beside = thread.passed / kOneBeside;
    bool ours = is_our_work(thread.mark);
    // The stack grows downwards.
    bool above = (entered | 15) >= (thread.mark | 15);
    if ((above && !ours) || holder == Layer::kWait || below >= kMostBelow ||
        beside >= kMostBeside) {
      count(below + beside - counted);
      return true;
    }
    thread.mark |= kMarkPassed;
    thread.passed += layer_of(entered) < holder || ours ? 1 : kOneBeside;
    // Our own work calls nothing that is hooked, and a library that we call lies below:
    // this is a call of a signal handler.
    if (holder == Layer::kOwnWork || (above && ours)) {
      thread.passed += kOneCounted;
      count(1);
    }
    return false;
  }

  bool outermost_;
};

// Held while we call into a library of somebody else's, or do anything outside of a
// hook: what is called below passes through. Puts back what was there.
class OwnCall {
 public:
  explicit OwnCall(void* frame) : before_(t_thread.mark), passed_(t_thread.passed) {
    uintptr_t mark = mark_of(frame, Layer::kLibrary);
    nested_ =
        (mark < before_ || is_our_work(before_)) && layer_of(before_) != Layer::kWait;
    t_thread.mark = mark;
  }
  ~OwnCall() {
    t_thread.mark = nested_ ? before_ : 0;
    t_thread.passed = passed_;
  }
  OwnCall(const OwnCall&) = delete;
  OwnCall& operator=(const OwnCall&) = delete;

  // Below a hook of this thread, as far as can be told.
  bool nested() const { return nested_; }

 private:
  uintptr_t before_;
  uint32_t passed_;
  bool nested_;
};

}  // namespace lull
