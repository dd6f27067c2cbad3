// What the kernel says about one thread: whether it runs, waits for a processor, or is
// blocked, and whether it has run since the last question. The files of /proc are kept
// open.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/samples/scheduling.h"
#include "events.pb.h"

namespace lull::relay {

// Field 3 of stat; 0: there is none.
char ParseState(absl::string_view stat);
// Both kinds of context switches of status, in sum.
bool ParseAllSwitches(absl::string_view status, uint64_t* switches);
// se.exec_start of sched: when the thread was last known to be on a processor, by that
// processor's clock; 0 of one that has been moved and has not run since.
bool ParseLastRun(absl::string_view sched, uint64_t* last_run_ns);

struct LastLook {
  Scheduling scheduling;
  lull::v1::HostSampleState state = lull::v1::HOST_SAMPLE_STATE_RUNNING;
  uint64_t at_ns = 0;  // 0: there was none
};

class ThreadFiles {
 public:
  // `pid` and `tid` as we see them. Where a file cannot be opened, the thread is gone.
  ThreadFiles(pid_t pid, uint32_t tid);

  bool Slices(Scheduling* scheduling);  // and the delay; false: the thread is gone
  // Where it runs, and how often it was pre-empted. `waits`: it was ready, and
  // had no processor or just got one; or we took its place. False: it is gone.
  bool Moves(Scheduling* scheduling, bool* waits);
  // Blocked, or one of the other two (kRunning); false: the thread is gone.
  bool Blocked(bool* blocked);
  // For a thread that is not blocked, after Blocked(): kReady if it is not on a
  // processor. This costs as much as a look, so ask only for a thread that does wait
  // for processors. A thread begins as many slices as there were switches away from it,
  // and one more while it runs. A thread that was last on the processor that we are on
  // now counts as running if it ran until we took its place, `awake_ns` ago at most; or
  // if the kernel does not tell (CONFIG_SCHED_DEBUG): most likely it did.
  lull::v1::HostSampleState RunningOrReady(uint64_t awake_ns);
  // The same, asked only where it is not plain from what was seen at the last look.
  lull::v1::HostSampleState RunningOrReady(const LastLook& last, const Scheduling& now,
                                           uint64_t at_ns, uint64_t awake_ns);
  // Its name.
  std::string Name() const;

 private:
  std::string path_;
  UniqueFd schedstat_;
  UniqueFd wchan_;
  UniqueFd stat_;
  UniqueFd status_;
  UniqueFd sched_;
  int in_vain_ = 0;
  int processor_ = -1;
};

}  // namespace lull::relay
