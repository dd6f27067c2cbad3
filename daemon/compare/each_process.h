// Each process of a side by itself.
#pragma once

#include <vector>

#include "daemon/compare/comparison.h"
#include "daemon/compare/run.h"

namespace lull::compare {

// Processes of several runs are those at the same place, by rank. All of `a` stays
// together, so that what any of its processes does is not new. Empty where the runs of
// `b` have one process, or another number each.
std::vector<OfProcess> CompareEachProcess(const Runs& a, const Runs& b);

}  // namespace lull::compare
