// The shim in one process that runs already: brought in, and switched off again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/attach/foothold.h"

namespace lull {

// What a process was kept from doing meanwhile.
struct Interruption {
  int calls = 0;
  absl::Duration longest;  // stop of any of its threads
  absl::Duration total;    // of the threads that made the calls
  bool python_pending =
      false;  // detach: Python's callbacks go with the next collection
};

// Calls into the process are made on a thread of ours; `serve` is called meanwhile: the
// shim shakes hands with the relay, which has to answer at once. It may wait for that,
// and for no longer than it is told.
using Serve = std::function<void(absl::Duration)>;

// Errors: those of inject::CallInTarget, and FAILED_PRECONDITION when the shim says no.
absl::StatusOr<Interruption> AttachTo(pid_t pid, const attach::Foothold& foothold,
                                      const std::string& step_range,
                                      const std::atomic<bool>& cancel,
                                      const Serve& serve);

// `patience`: for a hook to switch GPU tracing off, before it is left to nobody.
absl::StatusOr<Interruption> DetachFrom(pid_t pid, const attach::Foothold& foothold,
                                        absl::Duration patience, const Serve& serve);

}  // namespace lull
