#include "daemon/base/thread.h"

#include <sched.h>
#include <unistd.h>

namespace lull {

// Not SCHED_IDLE: on a full machine that is next to no time at all, and somebody waits
// for what is done there.
void YieldToOthers() {
  constexpr int kNicer = 5;  // a third of the weight
  (void)!nice(kNicer);
  const sched_param none{};
  if (sched_getscheduler(0) == SCHED_OTHER)
    (void)sched_setscheduler(0, SCHED_BATCH, &none);
}

}  // namespace lull
