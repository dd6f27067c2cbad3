// Stacks of samples as one tree for each kind of thread, of bounded size.
#pragma once

#include <cstddef>

#include "cli/html/packed.h"
#include "query.pb.h"

namespace lull {

// Parallel lists, parents before their children: `frame` (a number of the packer; of a
// root null), `parent` (-1 of a root), `total_us`, `self_us`; and `role` for each root.
// Thin branches are left out where there are more than `most` nodes: `least_us` says
// from which total on all are here.
Json FlameJson(const v1::Hot& stacks, size_t most, Packer& packer);

}  // namespace lull
