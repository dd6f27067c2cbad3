// Which CLOCK_MONOTONIC a process reads. The name of a host does not say it: containers
// have names of their own, and a time namespace has a clock of its own.
#pragma once

#include <cstdint>
#include <string>

namespace lull {

// Two processes in which both are equal read one clock.
struct ClockIdentity {
  std::string boot_id;          // of the kernel; "" = not known
  uint64_t time_namespace = 0;  // its inode; 0 = the kernel has none

  bool operator==(const ClockIdentity&) const = default;
};

// That of this process, read once. Thread-safe.
const ClockIdentity& OwnClock();

}  // namespace lull
