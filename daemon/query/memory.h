// What `lull memory` shows: of each process, allocator and device what was live, what
// made up its peak, how it went over steps, whether it grows, and what was reserved.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

enum class MemoryDetail {
  kTotals,  // of a report: no points, and not what makes up the peaks
  kAll,
};

absl::Status FillMemory(storage::StoreReader& reader, const storage::JobRow& job,
                        const std::vector<ProcessSums>& processes,
                        const lull::v1::ReportRequest& request, MemoryDetail detail,
                        Names& names, lull::v1::Memory* reply);

}  // namespace lull::query
