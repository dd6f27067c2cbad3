// Which threads a process has: /proc/PID/task.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace lull::relay {

// Kernel thread ids as the process itself sees them. `pid` as we see it; `own_names`:
// it sees itself under another number, being in a pid namespace of its own, and each
// thread's status file is asked for its inner number. nullopt: /proc does not tell
// (it is not mounted, or the process is gone).
std::optional<absl::flat_hash_set<uint32_t>> LiveThreads(pid_t pid, bool own_names);

}  // namespace lull::relay
