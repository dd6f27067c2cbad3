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

// What the time of our own is made of: the two clock reads around the original,
// and everything from `entered`, when it returned, to now. Both functions are the
// last act of a hook. They differ in who pays a third clock read (20 ns).
inline constexpr uint64_t kTwoClockReadsNs = 40;
// A thread that was forked has the ring of its parent until it commits an event.
inline bool has_ring() {
  return t_thread.ring != nullptr &&
         t_thread.generation == g_state->generation.load(std::memory_order_relaxed);
}
inline void add_self(uint64_t spent_ns) {
  auto& total = t_thread.ring->self_ns;
  total.store(total.load(std::memory_order_relaxed) + spent_ns,
              std::memory_order_relaxed);
  auto& samples = t_thread.ring->self_samples;
  samples.store(samples.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// Hooks that take whole stacks: each is timed, because one that meets a new stack
// costs a hundred times one that does not, and no sample could stand for it.
inline void account_self(uint64_t entered) {
  if (!has_ring()) return;
  add_self(monotonic_ns() - entered + kTwoClockReadsNs);
}

// Hooks of tens of nanoseconds, all alike: one in 64 is timed, and stands for all.
// One that took microseconds was interrupted in the middle. What interrupted it is
// not ours, and times 64 it would have the governor thin a job that costs nothing.
inline constexpr uint32_t kSelfSamplePeriod = 64;
inline constexpr uint64_t kLongestSampleNs = 4'000;
inline void account_self_sampled(uint64_t entered) {
  ThreadState& thread = t_thread;
  if (++thread.tick % kSelfSamplePeriod != 0 || !has_ring()) return;
  uint64_t spent = monotonic_ns() - entered;
  if (spent > kLongestSampleNs) spent = kLongestSampleNs;
  add_self((spent + kTwoClockReadsNs) * kSelfSamplePeriod);
}

}  // namespace lull
