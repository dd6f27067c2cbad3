// Rows that stand in the schema of a verb and in that of a report, as json_gpu.h and
// json_memory.h have them.
#pragma once

#include "cli/render/json.h"

namespace lull::schema {

Json CauseRows();
Json GapRows();
Json KernelRows();
Json CopyRows();
Json StepRows();
Json StepTotals();  // properties
Json Devices();
Json MemoryRows(bool details);

}  // namespace lull::schema
