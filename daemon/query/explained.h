// Explained idle: for how much of the idle time a report names the line that worked or
// waited, and not just the two lines around it. docs/explained_idle.md has the rules
// and what programs reach.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"

namespace lull::query {

// The explained part of the idle time of `processes`, in ns.
uint64_t ExplainedNs(const std::vector<ProcessSums>& processes, Names& names,
                     Stacks& stacks);

}  // namespace lull::query
