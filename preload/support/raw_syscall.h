// System calls of our own, past every wrapper: no hook of ours or of another
// preload sees them, and none is a cancellation point. They set errno as libc
// does; callers keep the target's (hooks/record.h, ErrnoKeeper).
#pragma once

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <initializer_list>

namespace lull {

inline pid_t raw_getpid() { return static_cast<pid_t>(syscall(SYS_getpid)); }
inline pid_t raw_gettid() { return static_cast<pid_t>(syscall(SYS_gettid)); }
inline void raw_close(int fd) { syscall(SYS_close, fd); }

inline timespec timespec_of(uint64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000u),
          static_cast<long>(ns % 1'000'000'000u)};
}

// poll() for one descriptor (or a mere pause, with -1). > 0: ready.
inline int raw_poll_one(int fd, short events, uint64_t timeout_ns) {
  pollfd entry = {fd, events, 0};
  timespec timeout = timespec_of(timeout_ns);
  return static_cast<int>(syscall(SYS_ppoll, &entry, 1, &timeout, nullptr, 0));
}

// Until `word` is no longer `value`, for a while at most; may end sooner.
inline void raw_futex_wait(std::atomic<uint32_t>* word, uint32_t value,
                           uint64_t timeout_ns) {
  timespec timeout = timespec_of(timeout_ns);
  syscall(SYS_futex, word, FUTEX_WAIT | FUTEX_PRIVATE_FLAG, value, &timeout, nullptr,
          0);
}
inline void raw_futex_wake_all(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE | FUTEX_PRIVATE_FLAG, INT32_MAX, nullptr, nullptr,
          0);
}

// Blocks every signal that another could send, for the life of the object. What a
// fault raises stays deliverable: the kernel kills a thread that blocks those.
class SignalsBlocked {
 public:
  SignalsBlocked() {
    uint64_t blocked = ~uint64_t{0};
    for (int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS}) {
      blocked &= ~(uint64_t{1} << (fault - 1));
    }
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before_, sizeof before_);
  }
  ~SignalsBlocked() {
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before_, nullptr, sizeof before_);
  }
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  uint64_t before_ = 0;
};

}  // namespace lull
