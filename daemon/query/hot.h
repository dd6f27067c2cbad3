// Where host time went: samples of threads by line, function or stack, each kind of
// thread by itself.
#pragma once

#include "absl/status/status.h"
#include "daemon/aggregate/host_sample.h"
#include "daemon/query/sections.h"

namespace lull::query {

// A line or function counts once in each sample that has it, however often it calls
// itself. Shares are of the time of all threads of the kind.
//
// FAILED_PRECONDITION, with the reason, where no process has samples at all, or none in
// the region that is asked for.
absl::Status FillHot(View& view, lull::v1::ReportReply* reply);

// Writes a share the way replies have it.
void SetShare(const aggregate::Sampled& part, const aggregate::Sampled& whole,
              lull::v1::SampledShare* out);

}  // namespace lull::query
