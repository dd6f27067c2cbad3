#include "tests/puppets/true_waits.h"

#include <dlfcn.h>
#include <semaphore.h>
#include <time.h>

namespace {

thread_local TrueWait t_last;

int64_t now_ns() {
  timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

template <typename Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

template <typename... Arguments>
int timed(int (*original)(Arguments...), Arguments... arguments) {
  t_last.start_ns = now_ns();
  int result = original(arguments...);
  t_last.end_ns = now_ns();
  return result;
}

}  // namespace

TrueWait last_true_wait() { return t_last; }

extern "C" int nanosleep(const timespec* time, timespec* rest) {
  static auto* original = next<decltype(nanosleep)>("nanosleep");
  return timed(original, time, rest);
}

extern "C" int clock_nanosleep(clockid_t clock, int flags, const timespec* time,
                               timespec* rest) {
  static auto* original = next<decltype(clock_nanosleep)>("clock_nanosleep");
  return timed(original, clock, flags, time, rest);
}

extern "C" int sem_timedwait(sem_t* semaphore, const timespec* until) {
  static auto* original = next<decltype(sem_timedwait)>("sem_timedwait");
  return timed(original, semaphore, until);
}
