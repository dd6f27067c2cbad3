// The rows of each report, from sums.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/stacks.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// `request` decides on grouping and on the number of rows; totals are over all rows.
void FillSyncs(const std::vector<ProcessSums>& processes,
               const lull::v1::ReportRequest& request, Names& names,
               lull::v1::Syncs* reply);
void FillAllocations(const std::vector<ProcessSums>& processes,
                     const lull::v1::ReportRequest& request, Names& names,
                     lull::v1::Allocations* reply);
void FillGc(const std::vector<ProcessSums>& processes,
            const lull::v1::ReportRequest& request, Names& names,
            lull::v1::GcPauses* reply);
// A data wait is often several waiting calls under one next(loader): `count` counts the
// calls. They follow each other, so that their total is the time that was waited.
void FillWaits(const std::vector<ProcessSums>& processes,
               const lull::v1::ReportRequest& request, Names& names, Stacks& stacks,
               lull::v1::HostWaits* reply);

uint64_t CountLaunches(const std::vector<ProcessSums>& processes);

}  // namespace lull::query
