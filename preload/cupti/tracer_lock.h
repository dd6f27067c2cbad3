// One thread at a time works on the tracer.
#pragma once

#include <cstdint>

#include "preload/cupti/tracer.h"
#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

namespace lull::cupti {

// Signals wait meanwhile: a handler that jumped out would leave the lock taken.
class Tracer::Lock {
 public:
  Lock(Tracer* tracer, uint64_t wait_ns) : tracer_(tracer) {
    constexpr uint64_t kSpinNs = 50'000;
    uint64_t give_up = wait_ns == 0 ? 0 : monotonic_ns() + wait_ns;
    for (;;) {
      uint32_t idle = 0;
      // Pairs with the release in the destructor.
      held_ = tracer->busy_.compare_exchange_strong(idle, 1, std::memory_order_acquire);
      if (held_ || wait_ns == 0 || monotonic_ns() > give_up) return;
      raw_poll_one(-1, 0, kSpinNs);
    }
  }
  ~Lock() {
    if (held_) tracer_->busy_.store(0, std::memory_order_release);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

  bool held() const { return held_; }

 private:
  SignalsBlocked signals_blocked_;
  Tracer* tracer_;
  bool held_ = false;
};

}  // namespace lull::cupti
