// Starts and ends the worker's process. Only fork, exec and wait; no policy.
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"

namespace lull::relay {

struct WorkerProcess {
  pid_t pid = -1;
  UniqueFd channel;  // the keeper's end
};

// This executable again, under kWorkerVerb, in a session of its own, with the
// channel and the listening socket as its only descriptors besides the standard
// streams, and an environment without LD_PRELOAD and LULL_SOCKET.
absl::StatusOr<WorkerProcess> StartWorkerProcess(int listen_fd);

// CPU time that the process has used, in ns; 0 when it is gone.
uint64_t WorkerCpuNs(pid_t pid);

// Waits for a process that is ending by itself, for `patience_ms` at most, then
// kills it; reaps it in any case.
void ReapWorkerProcess(pid_t pid, int patience_ms);

}  // namespace lull::relay
