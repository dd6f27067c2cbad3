// All that `lull report` shows of the processes, in one answer.
#pragma once

#include <vector>

#include "daemon/query/names.h"
#include "daemon/query/sums.h"
#include "query.pb.h"

namespace lull::query {

// Everything but what all replies share (job, losses, overhead). `gpu` is filled once,
// at the top, and not in the parts again.
void FillReport(const storage::JobRow& job, const std::vector<ProcessSums>& processes,
                const lull::v1::ReportRequest& request, Names& names,
                lull::v1::ReportReply* reply);

}  // namespace lull::query
