// What a comparison tells of each run of a side, and what of it nobody knows.
#pragma once

#include <vector>

#include "daemon/compare/comparison.h"
#include "daemon/compare/run.h"

namespace lull::compare {

// All but the step times.
RunFacts FactsOf(const Run& run);

}  // namespace lull::compare
