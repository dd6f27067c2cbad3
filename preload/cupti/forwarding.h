// The callbacks of another user of CUPTI, whose buffers come back to us.
#pragma once

#include <atomic>

#include "preload/cupti/types.h"

namespace lull::cupti {

using RegisterCallbacks = Result (*)(BufferRequested, BufferCompleted);

// Any thread, no locks.
class Forwarding {
 public:
  void remember(RegisterCallbacks original, BufferRequested requested,
                BufferCompleted completed) {
    requested_.store(requested, std::memory_order_relaxed);
    completed_.store(completed, std::memory_order_relaxed);
    register_.store(original, std::memory_order_relaxed);
  }
  // With which function they registered, of which libcupti.
  RegisterCallbacks registered_by() const {
    return register_.load(std::memory_order_relaxed);
  }
  // Whether new buffers are to be theirs.
  void turn(bool on) { on_.store(on, std::memory_order_release); }

  // Who is to be asked for a buffer; nullptr: we are.
  BufferRequested requested() const {
    BufferRequested theirs = requested_.load(std::memory_order_acquire);
    return on_.load(std::memory_order_acquire) ? theirs : nullptr;
  }
  // Whose the buffers are that are not ours; nullptr: nobody's.
  BufferCompleted completed() const {
    return completed_.load(std::memory_order_acquire);
  }

 private:
  std::atomic<bool> on_{false};
  std::atomic<BufferRequested> requested_{nullptr};
  std::atomic<BufferCompleted> completed_{nullptr};
  std::atomic<RegisterCallbacks> register_{nullptr};
};

}  // namespace lull::cupti
