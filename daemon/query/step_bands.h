// Steps over time, thinned so that what stands out stays, and those that took much
// longer than the rest, with the part that made them long.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "daemon/query/sections.h"

namespace lull::query {

absl::Status FillStepBands(const View& view, lull::v1::Timeline* reply);

// Adds a band of at most `most` steps, and the outliers. `steps` are of one process, in
// the order of time. Pure.
void AddSteps(const std::vector<lull::v1::StepRow>& steps, size_t most,
              lull::v1::Timeline* reply);

}  // namespace lull::query
