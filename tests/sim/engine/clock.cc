#include "tests/sim/engine/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace lull::sim {
namespace {

// Waking up takes 50 us and more on a busy machine; what is left is spun away.
constexpr int64_t kSpinNs = 50'000;

// Inline so that no interposed function, syscall(2)'s wrapper included, runs.
long raw_syscall(long number, long a, long b, long c, long d) {
  long result;
  register long r10 asm("r10") = d;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
}

}  // namespace

void spin_until(int64_t deadline_ns) {
  while (now_ns() < deadline_ns) __builtin_ia32_pause();
}

void sleep_until(int64_t deadline_ns) {
  int64_t wake = deadline_ns - kSpinNs;
  while (now_ns() < wake) {
    timespec ts{wake / 1'000'000'000, wake % 1'000'000'000};
    raw_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
                reinterpret_cast<long>(&ts), 0);
  }
  spin_until(deadline_ns);
}

void futex_wait(const uint32_t* word, uint32_t expected) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_PRIVATE, expected, 0);
}

void futex_wake_all(uint32_t* word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, INT_MAX, 0);
}

}  // namespace lull::sim
