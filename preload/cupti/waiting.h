// What waits for a device that is behind (backlog.h): the active time of a window, and
// what is left to collect after it.
#pragma once

#include <atomic>
#include <cstdint>

namespace lull::cupti {

// While tracing: how often CUPTI is asked for what has ended, and what it may still be
// at.
inline constexpr uint64_t kFlushPeriodNs = 1'000'000'000;

// Under the tracer's lock, but for `behind`.
struct Waiting {
  std::atomic<bool> behind{false};  // active time waits for the device...
  uint64_t counts_from_ns = 0;      // ...and would have begun then
  uint64_t waited_ns = 0;           // it began so much later
  uint64_t clock_end_ns = 0;        // when it would have ended by the clock; 0: not yet
  uint32_t boundaries_to_go = 0;    // of steps, until a whole one was traced
  uint64_t steps_waited = 0;        // begun since
  uint64_t steps_held = 0;          // warmed up longer than planned; they do not count

  void begin(uint64_t now) {
    behind.store(true, std::memory_order_relaxed);
    counts_from_ns = now;
    waited_ns = clock_end_ns = steps_waited = 0;
  }
  void end(uint64_t since) {
    behind.store(false, std::memory_order_relaxed);
    waited_ns = since - counts_from_ns;
  }
};

// Under the tracer's lock, but for `due_ns`.
struct Rest {
  std::atomic<uint64_t> due_ns{0};  // 0: nothing is left to collect
  uint64_t stopped_ns = 0;
  uint64_t moved_ns = 0;  // something came
  bool lost = false;      // it was told that some is missing
  uint64_t seen = 0;      // operations that had come by the last look
  uint32_t quiet = 0;
};

}  // namespace lull::cupti
