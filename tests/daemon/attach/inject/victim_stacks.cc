// Threads on other stacks than those that they were given, between data that must not
// change; and threads on their own stacks that look unusual.
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "tests/daemon/attach/inject/victim.h"

namespace {

constexpr size_t kPool = 4 << 20;
constexpr size_t kSmall = 8 << 10;
constexpr char kPattern = 0x33;  // the probe fills its own stack with 0x5a

void WorkAndSleep() {
  while (!Stopped()) {
    timespec span = {0, 5'000'000};
    nanosleep(&span, nullptr);
    long until = NowNs() + 5'000'000;
    while (NowNs() < until) asm volatile("");
    Count(true, 0);
  }
}

// A coroutine of `size` bytes in the middle of live data.
void RunInPool(char* pool, size_t size) {
  static thread_local ucontext_t outside, inside;
  char* low = pool + kPool / 2;
  memset(pool, kPattern, kPool);
  getcontext(&inside);
  inside.uc_stack.ss_sp = low;
  inside.uc_stack.ss_size = size;
  inside.uc_link = &outside;
  makecontext(&inside, WorkAndSleep, 0);
  swapcontext(&outside, &inside);
  long spoiled = 0;
  for (char* at = pool; at < low; ++at) spoiled += *at != kPattern;
  Count(spoiled == 0, spoiled);
}

char* MapPool() {
  void* pool =
      mmap(nullptr, kPool, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return pool == MAP_FAILED ? nullptr : static_cast<char*>(pool);
}

struct Place {
  char* pool;
  size_t size;
};

void* RunPlace(void* argument) {
  const Place& place = *static_cast<Place*>(argument);
  RunInPool(place.pool, place.size);
  return nullptr;
}

// Alone: a main thread that has ended cannot be made use of.
void AloneInThread(void* (*body)(void*), void* argument, void* stack, size_t size) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (stack != nullptr) pthread_attr_setstack(&attributes, stack, size);
  pthread_t thread;
  pthread_create(&thread, &attributes, body, argument);
  pthread_exit(nullptr);
}

void* WorkOnGivenStack(void* pool) {
  WorkAndSleep();
  long spoiled = 0;
  for (char* at = static_cast<char*>(pool); at < static_cast<char*>(pool) + kPool / 2;
       ++at) {
    spoiled += *at != kPattern;
  }
  Count(spoiled == 0, spoiled);
  return nullptr;
}

int CloneBody(void*) {
  // Nothing of libc that is of a thread: it has its parent's.
  while (!Stopped()) {
  }
  syscall(SYS_exit_group, 0);
  return 0;
}

void OnSignalStack() {
  stack_t stack = {};
  stack.ss_sp = MapPool();
  stack.ss_size = kPool;
  sigaltstack(&stack, nullptr);
  struct sigaction action = {};
  action.sa_handler = [](int) { WorkAndSleep(); };
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, nullptr);
  raise(SIGUSR1);
}

// The child's main thread has the stack of the thread that forked it.
void* ForkAndWork(void*) {
  pid_t child = fork();
  if (child == 0) {
    page->detail = getpid();
    WorkAndSleep();
    _exit(0);
  }
  int status = 0;
  Count(waitpid(child, &status, 0) == child && status == 0, errno);
  return nullptr;
}

}  // namespace

void FiberInMapping(int) { RunInPool(MapPool(), kSmall); }
void LargeFiberInMapping(int) { RunInPool(MapPool(), kPool / 2); }
void FiberInHeap(int) { RunInPool(static_cast<char*>(malloc(kPool)), kSmall); }
void FiberInThread(int) {
  static Place place = {MapPool(), kPool / 2};
  AloneInThread(RunPlace, &place, nullptr, 0);
}
void FiberBesideMain(int) {
  static Place place = {MapPool(), kSmall};
  pthread_t thread;
  pthread_create(&thread, nullptr, RunPlace, &place);
  pthread_join(thread, nullptr);
}
void GivenStack(int) {
  char* pool = MapPool();
  memset(pool, kPattern, kPool);
  AloneInThread(WorkOnGivenStack, pool, pool + kPool / 2, kPool / 2);
}
void RawClone(int) {
  clone(
      CloneBody, MapPool() + kPool,
      CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM,
      nullptr);
  syscall(SYS_exit, 0);
}
void SignalStack(int) { OnSignalStack(); }
void ForkedByThread(int) {
  pthread_t thread;
  pthread_create(&thread, nullptr, ForkAndWork, nullptr);
  pthread_join(thread, nullptr);
}
