// Sync points that came, went, or are called more or less often, by exact counts.
#pragma once

#include "daemon/compare/comparison.h"
#include "daemon/compare/run.h"

namespace lull::compare {

// A difference is claimed where every piece of every run has a whole number of calls
// per step and the numbers differ; else where it is larger than chance makes it, by the
// pieces (a sync that is done in bursts differs between them) and by the totals.
SyncChanges CompareSyncs(const Runs& a, const Runs& b);

}  // namespace lull::compare
