// What victims do, and their names.
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/daemon/attach/inject/victim.h"

namespace {

void Allocate(int thread) {
  constexpr int kSlots = 64;
  unsigned char* slots[kSlots] = {};
  size_t sizes[kSlots] = {};
  unsigned random = thread + 1;
  while (!Stopped()) {
    random = random * 1103515245 + 12345;
    int slot = random >> 8 & (kSlots - 1);
    size_t size = sizes[slot];
    bool good = size == 0 || (slots[slot][0] == slot && slots[slot][size - 1] == slot);
    free(slots[slot]);
    sizes[slot] = size = 1 + (random >> 16 & 0xfff) * (random & 64 ? 100 : 1);
    slots[slot] = static_cast<unsigned char*>(malloc(size));
    slots[slot][0] = slots[slot][size - 1] = slot;
    for (size_t i = 1; i + 1 < sizes[slot]; ++i) slots[slot][i] = i;  // put to use
    Count(good, slot);
  }
}

void OpenAndClose(int) {
  while (!Stopped()) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    bool good = handle != nullptr && dlsym(handle, "other") != nullptr;
    Count(good && dlclose(handle) == 0, 0);
  }
}

void OpenAndCompute(int) {
  while (!Stopped()) {
    void* handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    bool good = handle != nullptr && dlsym(handle, "other") != nullptr;
    for (int i = 0; i < 100'000; ++i) asm volatile("");
    Count(good && dlclose(handle) == 0, 0);
  }
}

bool EndedWell(pid_t child) {
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

void Multiply(int thread) {
  char path[] = "/bin/true";
  char* arguments[] = {path, nullptr};
  char* environment[] = {nullptr};
  while (!Stopped()) {
    pid_t child = -1;
    switch (thread % 3) {
      case 0:
        child = fork();
        if (child == 0) _exit(0);
        break;
      case 1:
        if (posix_spawn(&child, path, nullptr, nullptr, arguments, environment) != 0) {
          child = -1;
        }
        break;
      case 2:
        child = vfork();
        if (child == 0) {
          execve(path, arguments, environment);
          _exit(1);
        }
        break;
    }
    Count(EndedWell(child), errno);
  }
}

volatile sig_atomic_t alarms;

void RingEveryMillisecond(int flags) {
  struct sigaction action = {};
  action.sa_handler = [](int) { alarms = alarms + 1; };
  action.sa_flags = flags;
  sigaction(SIGALRM, &action, nullptr);
  itimerval every = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &every, nullptr);
}
void RingWithRestart() { RingEveryMillisecond(SA_RESTART); }
void RingWithout() { RingEveryMillisecond(0); }

// Computes and sleeps below a storm of signals; the mask stays what it was.
void UnderSignals(int) {
  sigset_t mine;
  sigemptyset(&mine);
  sigaddset(&mine, SIGUSR2);
  sigaddset(&mine, SIGWINCH);
  pthread_sigmask(SIG_SETMASK, &mine, nullptr);
  while (!Stopped()) {
    long until = NowNs() + 20'000'000;
    volatile double x = 1;
    while (NowNs() < until) x = x * 1.0000001;
    timespec span = {0, 2'000'000};
    int result = nanosleep(&span, nullptr);
    bool slept = result == 0 || errno == EINTR;
    sigset_t now;
    pthread_sigmask(SIG_SETMASK, nullptr, &now);
    bool same = true;
    for (int i = 1; i < 32; ++i) same &= sigismember(&now, i) == sigismember(&mine, i);
    Count(slept && same, same);
  }
  if (alarms < 10) Count(false, alarms);
}

void* ComputeOnly(void*) {
  while (!Stopped()) Count(true, 0);
  return nullptr;
}

// A thread with the smallest stack that every architecture allows (aarch64's least).
pthread_t ComputeOnASmallStack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_t thread = 0;
  const bool good = pthread_attr_setstacksize(&attributes, 128 << 10) == 0 &&
                    pthread_create(&thread, &attributes, ComputeOnly, nullptr) == 0;
  if (!good) abort();
  return thread;
}

// It is the one thread that is left.
void OnASmallStack(int) {
  ComputeOnASmallStack();
  pthread_exit(nullptr);
}

// The same, with a main thread that waits for it.
void BesideASmallStack(int) { pthread_join(ComputeOnASmallStack(), nullptr); }

// Deep in its stack, below what a main thread has mapped at its start.
void __attribute__((noinline)) Deep(int left) {
  char frame[32 << 10];
  memset(frame, left, sizeof(frame));
  asm volatile("" ::"r"(frame) : "memory");
  if (left > 0) {
    Deep(left - 1);
  } else {
    while (!Stopped()) Count(true, 0);
  }
  Count(frame[100] == static_cast<char>(left), left);
}

// Between a call and the look at its errno.
void KeepErrno(int) {
  while (!Stopped()) {
    errno = ENOTTY;
    long until = NowNs() + 1'000'000;
    while (NowNs() < until) {
    }
    Count(errno == ENOTTY, errno);
  }
}

int answers[2];  // a pipe

// Waits without an end, which a signal's handler ends with EINTR, or which are begun
// again behind its back (SA_RESTART).
void WaitForSignals(int) {
  int none[2];
  if (pipe(none) != 0 || pipe(answers) != 0) abort();
  struct sigaction action = {};
  action.sa_handler = [](int) { alarms = alarms + write(answers[1], "", 1); };
  sigaction(SIGUSR1, &action, nullptr);
  pollfd nothing = {none[0], POLLIN, 0};
  int ended = ppoll(&nothing, 1, nullptr, nullptr);
  Count(ended == -1 && errno == EINTR && alarms == 1, errno);
  timespec hour = {3600, 0};
  ended = nanosleep(&hour, &hour);
  Count(ended == -1 && errno == EINTR && alarms == 2 && hour.tv_sec > 3000, errno);
  action.sa_flags = SA_RESTART;
  sigaction(SIGUSR1, &action, nullptr);
  epoll_event event;
  ended = epoll_wait(epoll_create1(0), &event, 1, -1);  // is not begun again
  Count(ended == -1 && errno == EINTR && alarms == 3, errno);
  char bytes[3];
  ended = read(answers[0], bytes, 3);  // what is there by now
  Count(ended == 3, ended);
  ended = read(answers[0], bytes, 3);
  Count(ended == 1 && alarms == 4, errno);
}

}  // namespace

const Kind kKinds[] = {
    {"registers", ComputeWithAllRegisters, nullptr},
    {"compute", [](int) { ComputeOnly(nullptr); }, nullptr},
    {"allocate", Allocate, nullptr},
    {"dlopen", OpenAndCompute, nullptr},
    {"dlopen_only", OpenAndClose, nullptr},
    {"fork", Multiply, nullptr},
    {"signals_restart", UnderSignals, RingWithRestart},
    {"signals", UnderSignals, RingWithout},
    {"small_stack", OnASmallStack, nullptr},
    {"beside_small_stack", BesideASmallStack, nullptr},
    {"deep", [](int) { Deep(20); }, nullptr},
    {"errno", KeepErrno, nullptr},
    {"nanosleep", [](int) { SleepInTurns("nanosleep"); }, nullptr},
    {"absolute", [](int) { SleepInTurns("absolute"); }, nullptr},
    {"poll", [](int) { SleepInTurns("poll"); }, nullptr},
    {"ppoll", [](int) { SleepInTurns("ppoll"); }, nullptr},
    {"select", [](int) { SleepInTurns("select"); }, nullptr},
    {"epoll", [](int) { SleepInTurns("epoll"); }, nullptr},
    {"short_epoll", [](int) { SleepInTurns("short_epoll"); }, nullptr},
    {"condition", [](int) { SleepInTurns("condition"); }, nullptr},
    {"futex", [](int) { SleepInTurns("futex"); }, nullptr},
    {"until_signal", WaitForSignals, nullptr},
    {"sigtimedwait", [](int) { SleepInTurns("sigtimedwait"); }, nullptr},
    {"fiber", FiberInMapping, nullptr},
    {"large_fiber", LargeFiberInMapping, nullptr},
    {"fiber_in_heap", FiberInHeap, nullptr},
    {"fiber_in_thread", FiberInThread, nullptr},
    {"fiber_beside_main", FiberBesideMain, nullptr},
    {"given_stack", GivenStack, nullptr},
    {"raw_clone", RawClone, nullptr},
    {"signal_stack", SignalStack, nullptr},
    {"forked_by_thread", ForkedByThread, nullptr},
    {nullptr, nullptr, nullptr},
};
