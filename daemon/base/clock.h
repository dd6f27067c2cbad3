// The clocks of lull, in nanoseconds. Everything that is stored is in CLOCK_MONOTONIC
// of the host; CLOCK_REALTIME only places a job in the calendar. It may be set at any
// time, so nothing waits by it.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace lull {

uint64_t MonotonicNs();
uint64_t RealtimeNs();
uint64_t BoottimeNs();  // CLOCK_BOOTTIME: monotonic, and goes on while the host sleeps
uint64_t ProcessCpuNs();  // user and system time of this process so far

// CLOCK_MONOTONIC as a time, for deadlines. Compare it only with other results of this.
absl::Time SteadyNow();

}  // namespace lull
