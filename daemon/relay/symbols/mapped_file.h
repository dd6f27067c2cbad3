// The file that a process has mapped, and no other one.
#pragma once

#include <sys/types.h>

#include "daemon/base/unique_fd.h"
#include "daemon/relay/symbols/maps.h"

namespace lull::relay {

// Opens what /proc/PID/maps calls `mapping.path`, below the root of process `pid` or,
// where that cannot be had or does not hold it, below `root`, which was its root while
// it lived (-1: not known), and then below our own. The kernel's paths have
// no links, so none is followed: a link that a target's user makes leads nowhere. What
// was found must be a regular file (nothing else is opened), the one that was mapped,
// of at most kMaxMappedFile bytes. An empty descriptor otherwise.
UniqueFd OpenMappedFile(pid_t pid, const Mapping& mapping, int root = -1);

// The same below an open folder.
UniqueFd OpenMappedFileBelow(int root, const Mapping& mapping);

inline constexpr uint64_t kMaxMappedFile = uint64_t{4} << 30;

}  // namespace lull::relay
