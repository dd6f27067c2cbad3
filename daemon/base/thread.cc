#include "daemon/base/thread.h"

#include <sched.h>
#include <unistd.h>

#include <atomic>

namespace lull {
namespace {

const sched_param kNone{};
std::atomic<bool> g_wait_for_turns{false};

}  // namespace

void WaitForTurns() {
  if (sched_getscheduler(0) != SCHED_OTHER) return;  // somebody chose it
  if (sched_setscheduler(0, SCHED_BATCH, &kNone) == 0) g_wait_for_turns = true;
}

void TakeTurnsAtOnce() {
  if (g_wait_for_turns) (void)sched_setscheduler(0, SCHED_OTHER, &kNone);
}

// Not SCHED_IDLE: on a full machine that is next to no time at all, and somebody waits
// for what is done there.
void YieldToOthers() {
  constexpr int kNicer = 5;  // a third of the weight
  (void)!nice(kNicer);
  if (sched_getscheduler(0) == SCHED_OTHER)
    (void)sched_setscheduler(0, SCHED_BATCH, &kNone);
}

}  // namespace lull
