// What `lull memory` shows. For each process, allocator and device: what was live, what
// made up its peak, how it changed over steps, whether it grows, and what was reserved.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

enum class MemoryDetail {
  kTotals,  // for a report: no points, and not what makes up the peaks
  kAll,
};

absl::Status FillMemory(storage::StoreReader& reader, const storage::JobRow& job,
                        const std::vector<ProcessSums>& processes,
                        const lull::v1::ReportRequest& request, MemoryDetail detail,
                        Names& names, lull::v1::Memory* reply);

}  // namespace lull::query
