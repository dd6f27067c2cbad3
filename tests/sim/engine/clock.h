// The only clock of the simulated device: CLOCK_MONOTONIC of the host in ns.
#pragma once

#include <cstdint>
#include <ctime>

namespace lull::sim {

inline int64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

// Blocks the calling thread until `deadline_ns`: sleeps, then spins for the last
// stretch, so that blocked time is exact to a few microseconds on an idle core.
// Enters the kernel directly: a preloaded library that watches libc's waiting
// functions sees the device wait only, never a second wait below it. Keeps errno.
void sleep_until(int64_t deadline_ns);

// Busy until `deadline_ns`: the price of a call that computes on the host.
void spin_until(int64_t deadline_ns);

// Futexes without libc in between; the same reasons.
void futex_wait(const uint32_t* word, uint32_t expected);
void futex_wake_all(uint32_t* word);

// The same for a word in memory that processes share. Returns after `timeout_ns` at the
// latest.
void shared_futex_wait(const uint32_t* word, uint32_t expected, int64_t timeout_ns);
void shared_futex_wake_all(uint32_t* word);

}  // namespace lull::sim
