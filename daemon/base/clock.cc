#include "daemon/base/clock.h"

#include <time.h>

namespace lull {
namespace {

uint64_t Read(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

}  // namespace

uint64_t MonotonicNs() { return Read(CLOCK_MONOTONIC); }
uint64_t RealtimeNs() { return Read(CLOCK_REALTIME); }
uint64_t BoottimeNs() { return Read(CLOCK_BOOTTIME); }
uint64_t ProcessCpuNs() { return Read(CLOCK_PROCESS_CPUTIME_ID); }
absl::Time SteadyNow() {
  return absl::FromUnixNanos(static_cast<int64_t>(MonotonicNs()));
}

}  // namespace lull
