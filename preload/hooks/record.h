// What every hook file shares: recording one event around one original call.
#pragma once

#include <errno.h>

#include "preload/hooks/guard.h"
#include "preload/ring/writer.h"
#include "preload/stacks/stacks.h"
#include "preload/support/clock.h"

namespace lull {

// Saves errno on entry and puts it back on exit.
class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

// One hook in 64 times itself; the sample stands for all 64. `entered` is when
// our own code began after the original returned.
inline constexpr uint32_t kSelfSamplePeriod = 64;
inline void account_self(uint64_t entered) {
  ThreadState& thread = t_thread;
  if (++thread.tick % kSelfSamplePeriod != 0 || thread.ring == nullptr) return;
  uint64_t spent = (monotonic_ns() - entered) + 40;  // 40 ns: the two clock reads
  auto& total = thread.ring->self_ns;
  total.store(total.load(std::memory_order_relaxed) + spent * kSelfSamplePeriod,
              std::memory_order_relaxed);
  auto& samples = thread.ring->self_samples;
  samples.store(samples.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

}  // namespace lull
