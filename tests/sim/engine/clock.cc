#include "tests/sim/engine/clock.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

namespace lull::sim {
namespace {

// Waking up takes 25 us (median of a 2-core machine at load 6, 90 % within 45 us);
// what is left is spun away. With the default timer slack of 50 us it takes 80.
constexpr int64_t kSpinNs = 50'000;
constexpr long kTimerSlackNs = 1;

// Inline so that no interposed function, syscall(2)'s wrapper included, runs.
long raw_syscall(long number, long a, long b, long c, long d) {
#if defined(__aarch64__)
  register long x8 asm("x8") = number;
  register long x0 asm("x0") = a;
  register long x1 asm("x1") = b;
  register long x2 asm("x2") = c;
  register long x3 asm("x3") = d;
  asm volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3) : "memory");
  return x0;
#else
  long result;
  register long r10 asm("r10") = d;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10)
               : "rcx", "r11", "memory");
  return result;
#endif
}

}  // namespace

void spin_until(int64_t deadline_ns) {
  while (now_ns() < deadline_ns) {
#if defined(__aarch64__)
    asm volatile("isb");  // as long as x86's pause
#else
    __builtin_ia32_pause();
#endif
  }
}

void sleep_until(int64_t deadline_ns) {
  int64_t wake = deadline_ns - kSpinNs;
  if (now_ns() >= wake) return spin_until(deadline_ns);
  long slack = raw_syscall(SYS_prctl, PR_GET_TIMERSLACK, 0, 0, 0);
  raw_syscall(SYS_prctl, PR_SET_TIMERSLACK, kTimerSlackNs, 0, 0);
  while (now_ns() < wake) {
    timespec ts{wake / 1'000'000'000, wake % 1'000'000'000};
    raw_syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME,
                reinterpret_cast<long>(&ts), 0);
  }
  raw_syscall(SYS_prctl, PR_SET_TIMERSLACK, slack, 0, 0);
  spin_until(deadline_ns);
}

void futex_wait(const uint32_t* word, uint32_t expected) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT_PRIVATE, expected, 0);
}

void futex_wake_all(uint32_t* word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE_PRIVATE, INT_MAX, 0);
}

void shared_futex_wait(const uint32_t* word, uint32_t expected, int64_t timeout_ns) {
  timespec ts{timeout_ns / 1'000'000'000, timeout_ns % 1'000'000'000};
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAIT, expected,
              reinterpret_cast<long>(&ts));
}

void shared_futex_wake_all(uint32_t* word) {
  raw_syscall(SYS_futex, reinterpret_cast<long>(word), FUTEX_WAKE, INT_MAX, 0);
}

}  // namespace lull::sim
