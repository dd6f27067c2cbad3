// Collectives whose waits tell which one they are for, as those of NCCL on the device.
#pragma once

#include <vector>

#include "daemon/ranks/collectives.h"

namespace lull::ranks {

// Adds each wait that has an identity as a burst of its own, and the collectives of
// which the waits of all members are there. Those that are not, or of which waits
// contradict each other, are none. All collectives are in the order of time then.
void AddIdentified(const std::vector<Rank>& ranks, Matched* matched);

}  // namespace lull::ranks
