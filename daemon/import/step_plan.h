// The training steps that a trace names ("ProfilerStep#N").
#pragma once

#include <cstdint>
#include <vector>

#include "absl/strings/string_view.h"
#include "daemon/import/record.h"

namespace lull::imports {

struct PlannedStep {
  uint64_t number = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t tid = 0;
};

// Whether a step goes by this name.
bool NamesStep(absl::string_view name);

// In the order of time, of a trace whose records are. A step lasts until the next one
// begins, the last one until what it launched is done on the device.
std::vector<PlannedStep> StepsOf(const Trace& trace);

}  // namespace lull::imports
