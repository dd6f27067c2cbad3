// Regions that the program named: how often, how long, what the GPU did meanwhile.
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// A row for each name path. Parents before their children, of those side by side the
// ones with most time first. `top` keeps the rows with most time.
void FillRegions(const std::vector<ProcessSums>& processes,
                 const lull::v1::ReportRequest& request, Names& names,
                 lull::v1::Regions* reply);

}  // namespace lull::query
