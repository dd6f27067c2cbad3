#include "tests/sim/engine/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace lull::sim {
namespace {

// A program may call CUDA from an exit handler, after the destructors of the thread's
// variables: then it gets a state anew.
thread_local ThreadState* t_state = nullptr;
struct Cleaner {
  ~Cleaner() {
    delete t_state;
    t_state = nullptr;
  }
  void touch() {}
};
thread_local Cleaner t_cleaner;

}  // namespace

ThreadState& this_thread() {
  if (t_state == nullptr) {
    t_cleaner.touch();
    t_state = new ThreadState;
    t_state->tid = static_cast<uint32_t>(syscall(SYS_gettid));
  }
  return *t_state;
}

}  // namespace lull::sim
