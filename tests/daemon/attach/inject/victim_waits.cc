// Waits with a time limit, which must take as long as was asked.
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <mutex>

#include "tests/daemon/attach/inject/victim.h"

namespace {

constexpr long kWaitMs = 300;
constexpr long kShortWaitMs = 2;

timespec In(long ms, clockid_t clock) {
  timespec at;
  clock_gettime(clock, &at);
  at.tv_nsec += ms * 1000000;
  at.tv_sec += at.tv_nsec / 1000000000;
  at.tv_nsec %= 1000000000;
  return at;
}

// 0: it ended because its time was over, else the errno.
int WaitOnce(const char* how) {
  timespec span = {0, kWaitMs * 1000000};
  int none[2];
  if (pipe(none) != 0) return errno;
  int result = 0;
  pollfd nothing = {none[0], POLLIN, 0};
  if (strcmp(how, "nanosleep") == 0) {
    result = nanosleep(&span, nullptr);
  } else if (strcmp(how, "absolute") == 0) {
    timespec until = In(kWaitMs, CLOCK_MONOTONIC);
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    result = errno == 0 ? 0 : -1;
  } else if (strcmp(how, "poll") == 0) {
    result = poll(&nothing, 1, kWaitMs);
  } else if (strcmp(how, "ppoll") == 0) {
    sigset_t mask;
    sigemptyset(&mask);
    result = ppoll(&nothing, 1, &span, &mask);
  } else if (strcmp(how, "select") == 0) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(none[0], &set);
    timeval time = {0, kWaitMs * 1000};
    result = select(none[0] + 1, &set, nullptr, nullptr, &time);
  } else if (strcmp(how, "epoll") == 0 || strcmp(how, "short_epoll") == 0) {
    int epoll = epoll_create1(0);
    epoll_event event;
    result = epoll_wait(epoll, &event, 1, *how == 's' ? kShortWaitMs : kWaitMs);
    int error = errno;
    close(epoll);
    errno = error;
  } else if (strcmp(how, "condition") == 0) {
    static std::mutex mutex;
    static std::condition_variable condition;
    std::unique_lock lock(mutex);
    auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kWaitMs);
    while (condition.wait_until(lock, until) == std::cv_status::no_timeout) {
    }
  } else if (strcmp(how, "futex") == 0) {
    int word = 0;
    result = syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &span);
    if (result < 0 && errno == ETIMEDOUT) result = 0;
  } else if (strcmp(how, "sigtimedwait") == 0) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR2);
    result = sigtimedwait(&set, nullptr, &span);
    if (result < 0 && errno == EAGAIN) result = 0;
  }
  int error = result == 0 ? 0 : result < 0 ? errno : EPROTO;
  close(none[0]);
  close(none[1]);
  return error;
}

}  // namespace

void SleepInTurns(const char* how) {
  while (!Stopped()) {
    long begin = NowNs();
    int error = WaitOnce(how);
    Took(NowNs() - begin);
    Count(error == 0, error);
  }
}
