// The page behind g_state: State, and what else a fork child must not inherit.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstdint>

#include "preload/entry/state.h"

namespace lull {

struct ThreadState;

// StatePage::starting: what the thread does that is in try_start_recording.
enum Starting : uint32_t {
  kIdle = 0,  // there is none
  kBegins = 1,
  kAsksRelay = 2,  // waits for the relay's answer, and for nothing else
  kPrepares = 3,
};

struct StatePage {
  State state;
  // The process that wrote this page; another one's is a fork parent's page that
  // the kernel did not wipe (before Linux 4.14).
  std::atomic<pid_t> owner;
  std::atomic<uint32_t> loaded_here;  // the library was loaded in this process:
                                      // it is no fork child
  // The thread that asks whether a filter is there (entry/sandbox.h). That takes a
  // descriptor: if each of a thousand threads that begin together had one, the program
  // and the start itself would find none.
  std::atomic<ThreadState*> looker;
  std::atomic<uint32_t> starting;     // a futex: others wait until it is kIdle
  std::atomic<uint32_t> impatient;    // one of them has waited long enough for all
  std::atomic<uint32_t> data_worker;  // known for a DataLoader worker
  std::atomic<uint64_t> missed;  // events of those that waited in vain, to be counted
};

// Maps the page and lets g_state point to it, once. False: no memory, stay inert.
bool create_state_page();

// nullptr before create_state_page().
StatePage* state_page();

// For pthread_atfork: does what the kernel's wipe does, if that has not been done.
void wipe_state_of_parent();

// Grows with every segment; a fork child goes on where its parent stood, so that
// no thread state copied from the parent fits the child's first segment.
uint32_t next_generation();

}  // namespace lull
