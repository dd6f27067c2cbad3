// The timeline for a page: bins and gaps as short lists of integers.
#pragma once

#include <cstddef>

#include "cli/render/json.h"
#include "query.pb.h"

namespace lull {

// Times in ticks of `tick_ns`; starts of gaps and steps each as the distance to the one
// before.
Json TimelineJson(const v1::ReportReply& reply);

// Leaves the longest `most` gaps, and counts the others as left out.
void ThinGaps(size_t most, v1::Timeline* timeline);

}  // namespace lull
