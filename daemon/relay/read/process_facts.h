// What /proc says about a target. It is read while the target waits in the handshake,
// so that it is surely there.
#pragma once

#include <sys/types.h>

#include "events.pb.h"

namespace lull::relay {

// Fills pid, parent_pid, command, executable, rank, local_rank and world_size; what
// cannot be read stays empty (-1 for the ranks).
lull::v1::ProcessInfo ReadProcessFacts(pid_t pid);

// 0: there is no such process.
uint32_t ParentOf(pid_t pid);

}  // namespace lull::relay
