// Which threads a process has: /proc/PID/task.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace lull {

// Those of `asked` that are alive: kernel thread ids as the process itself sees them.
// `pid`: as we see it. `own_names`: the process is in a pid namespace of its own and
// sees other numbers, so that each thread's status file is asked for the inner number.
// nullopt: /proc does not say (it is not mounted, or the process is gone).
//
// A listing of /proc/PID/task may leave out a thread that lives, if one before it ends
// meanwhile. So a thread that was not listed is asked for by its number; if only its
// inner number is known, it is looked for in two more listings.
std::optional<absl::flat_hash_set<uint32_t>> LiveThreads(
    pid_t pid, bool own_names, absl::flat_hash_set<uint32_t> asked);

}  // namespace lull
