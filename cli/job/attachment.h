// The shim in one process that runs already: brought in, and switched off again.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <functional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/attach/examine/foothold.h"
#include "daemon/attach/inject/inject.h"

namespace lull {

// A thread of ours makes the calls into the process. `serve` is called meanwhile: the
// shim shakes hands with the relay, which has to answer at once. It may wait for that,
// but not longer than its argument.
using Serve = std::function<void(absl::Duration)>;

// `stops`: the longest ones of its threads are added, also where it comes to nothing.
// Errors: those of inject::Injector, FAILED_PRECONDITION when the shim says no, and
// DEADLINE_EXCEEDED when it does not get done. Without `samples` the process hands no
// memory over, and its DataLoader workers say nothing.
absl::Status AttachTo(pid_t pid, const attach::Foothold& foothold, bool samples,
                      const std::atomic<bool>& cancel, const Serve& serve,
                      inject::Stops* stops);

// `patience`: how long to wait until a hook has switched GPU tracing off. A process
// that does not hold the shim is left alone.
absl::Status DetachFrom(pid_t pid, const attach::Foothold& foothold,
                        absl::Duration patience, const Serve& serve,
                        inject::Stops* stops);

}  // namespace lull
