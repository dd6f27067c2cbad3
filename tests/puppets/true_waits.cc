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

template <typename... Arguments>
int timed(const char* name, Arguments... arguments) {
  auto* original = reinterpret_cast<int (*)(Arguments...)>(dlsym(RTLD_NEXT, name));
  t_last.start_ns = now_ns();
  int result = original(arguments...);
  t_last.end_ns = now_ns();
  return result;
}

}  // namespace

TrueWait last_true_wait() { return t_last; }

extern "C" int nanosleep(const timespec* time, timespec* rest) {
  return timed("nanosleep", time, rest);
}

extern "C" int sem_timedwait(sem_t* semaphore, const timespec* until) {
  return timed("sem_timedwait", semaphore, until);
}
