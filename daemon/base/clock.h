// The two clocks of lull, in nanoseconds. Everything that is stored is in
// CLOCK_MONOTONIC of the host; CLOCK_REALTIME only places a job in the calendar.
#pragma once

#include <cstdint>

namespace lull {

uint64_t MonotonicNs();
uint64_t RealtimeNs();
uint64_t ProcessCpuNs();  // user and system time of this process so far

}  // namespace lull
