// What a report says about the files of an imported job. Pure.
#pragma once

#include <string>
#include <vector>

#include "query.pb.h"

namespace lull {

// "h100.json.gz: 132,152 events of torch.profiler, 31,995 of them not used".
std::string ImportedLine(const v1::ImportInfo& told);
// What was ignored, what was found, what cannot be told: for the page of a report.
std::vector<std::string> ImportedRemarks(const v1::ImportInfo& told);

}  // namespace lull
