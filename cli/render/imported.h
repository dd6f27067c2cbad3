// What a report says about the files of an imported job. Pure.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

#include "query.pb.h"

namespace lull {

// "h100.json.gz: 132,152 events of torch.profiler, 31,995 of them not used".
std::string ImportedLine(const v1::ImportInfo& told);
// What was ignored, what was found, what cannot be told: for the page of a report.
std::vector<std::string> ImportedRemarks(const v1::ImportInfo& told);
// Those of `sentences` (daemon/base/import_words.h) that the trace cannot tell, a line
// each; "" of a job that was recorded.
std::string CannotBeTold(const v1::ImportInfo& told,
                         std::initializer_list<const char*> sentences);
// What PyTorch's allocator held of devices when a memory snapshot was taken, and how
// much of it was of no use; "" of other jobs.
std::string SegmentsText(const v1::ImportInfo& told);

}  // namespace lull
