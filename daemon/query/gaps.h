// Idle time of the GPU: by cause, between which lines, and whose fault it was.
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// Causes sum to the idle time of the range exactly; so do all rows. `count` counts
// parts of gaps that begin in the range, `max_ns` is the whole length of the longest
// part that lies in it, also where the range cuts it off. Samples of threads say what
// was done in a row; they never change its time.
void FillGaps(const std::vector<ProcessSums>& processes,
              const lull::v1::ReportRequest& request, Names& names, Stacks& stacks,
              lull::v1::Gaps* reply);

}  // namespace lull::query
