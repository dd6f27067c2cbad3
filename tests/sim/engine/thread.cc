#include "tests/sim/engine/thread.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace lull::sim {

ThreadState& this_thread() {
  thread_local ThreadState state;
  if (state.tid == 0) state.tid = static_cast<uint32_t>(syscall(SYS_gettid));
  return state;
}

}  // namespace lull::sim
