// The libc functions behind the host-wait hooks.
//
// A hook may be called before our constructor (from another library's), in a vfork
// child, in a signal handler. So every slot holds something callable from the first
// instruction on: a function that looks all originals up, then calls the one meant.
#pragma once

#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#include <atomic>

#include "preload/abi/hook_list.h"

// LULL_IF_<family>(X, ...) keeps the rows of LULL_LIBC_HOOKS that are waits.
#define LULL_IF_wait(X, ...) X(__VA_ARGS__)
#define LULL_IF_life(X, ...)

namespace lull {

struct WaitOriginals {
#define LULL_MEMBER(result, name, parameters, arguments) \
  std::atomic<result(*) parameters> name;
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_MEMBER, result, name, parameters, arguments)
  LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
#undef LULL_MEMBER
};

extern WaitOriginals g_wait_originals __attribute__((visibility("hidden")));

// Cold. Finds what has not been found yet. Allocates nothing.
void resolve_wait_originals();

}  // namespace lull
