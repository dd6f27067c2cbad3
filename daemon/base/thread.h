// Threads beside the one that a process is about.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace lull {

// Starts a thread that takes no signals: they are for the other ones. Throws
// std::system_error where there are too many threads.
template <typename Run>
std::thread StartThread(Run&& run) {
  class Blocked {
   public:
    Blocked() {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

   private:
    sigset_t before_;
  };
  const Blocked blocked;  // a thread begins with the mask of whoever starts it
  return std::thread(std::forward<Run>(run));
}

// The calling thread, and threads and processes that it starts from now on, drive
// nobody from a processor: when they wake up they look for an idle one, or wait for
// their turn (SCHED_BATCH). Their share stays what it was. Needs no right.
void WaitForTurns();
// Takes that back, for the calling thread alone.
void TakeTurnsAtOnce();

// The calling thread, and threads and processes that it starts from now on, yield to
// those that wait for a processor. Needs no right, and cannot be taken back.
//
// Neither is for what holds a lock that somebody else's process wants: /proc/PID/maps
// does.
void YieldToOthers();

}  // namespace lull
