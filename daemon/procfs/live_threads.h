// Which threads a process has: /proc/PID/task.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"

namespace lull {

// Of `asked`, those that are alive: kernel thread ids as the process itself sees them.
// `pid` as we see it; `own_names`: it sees itself under another number, being in a pid
// namespace of its own, and each thread's status file is asked for its inner number.
// nullopt: /proc does not tell (it is not mounted, or the process is gone).
//
// A listing of /proc/PID/task may leave out a thread that lives, where one before it
// ends meanwhile. So one that was not listed is asked for by its number, or, where only
// its inner number is known, looked for in two more listings.
std::optional<absl::flat_hash_set<uint32_t>> LiveThreads(
    pid_t pid, bool own_names, absl::flat_hash_set<uint32_t> asked);

}  // namespace lull
