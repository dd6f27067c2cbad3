// The source text that goes with a reply.
#pragma once

#include "absl/status/status.h"
#include "daemon/query/sections.h"
#include "query.pb.h"

namespace lull::query {

// Bytes of text in one reply; what is beyond them is left out.
inline constexpr size_t kMostSourceBytes = 256 << 10;

// Fills `sources` of the reply and of each of its details: what is kept of the lines
// that their sites name.
absl::Status FillSources(const View& view, lull::v1::ReportReply* reply);

}  // namespace lull::query
