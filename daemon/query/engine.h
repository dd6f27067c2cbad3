// Answers about jobs, from what the store holds; no gRPC. Each answer reads one
// consistent state of the store, also while a job reports.
#pragma once

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

// Whether a relay reports the job now; without one nobody will see its end.
using HasRelay = std::function<bool(const std::string& job)>;

absl::Status ListJobs(storage::Store& store, const HasRelay& has_relay,
                      const lull::v1::ListJobsRequest& request,
                      lull::v1::ListJobsReply* reply);

// Errors: NOT_FOUND for no such job or process, INVALID_ARGUMENT for a range that is
// none or a section that is not known here; else those of the store.
absl::Status Report(storage::Store& store, const HasRelay& has_relay,
                    const lull::v1::ReportRequest& request,
                    lull::v1::ReportReply* reply);

}  // namespace lull::query
