#include "daemon/relay/samples/early_turns.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace lull::relay {
namespace {

// struct sched_attr of linux/sched/types.h, its first version: that header and libc's
// define the same names.
struct SchedulingOf {
  uint32_t size;
  uint32_t policy;
  uint64_t flags;
  int32_t nice;
  uint32_t priority;
  uint64_t runtime_ns;  // of SCHED_OTHER: the slice, from Linux 6.12
  uint64_t deadline_ns;
  uint64_t period_ns;
};

}  // namespace

void AskForEarlyTurns() {
  constexpr uint64_t kShortestSliceNs = 100'000;
  SchedulingOf now{};
  if (syscall(SYS_sched_getattr, 0, &now, sizeof(now), 0) != 0) return;
  if (now.policy != SCHED_OTHER) return;
  now.size = sizeof(now);
  now.runtime_ns = kShortestSliceNs;
  (void)syscall(SYS_sched_setattr, 0, &now, 0);
}

}  // namespace lull::relay
