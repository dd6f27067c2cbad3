// Reads the JSON traces of torch.profiler (Kineto, of NVIDIA and ROCm, since 2020) and
// of others in the format of chrome://tracing that name things as it does.
//
// One event at a time, in whatever order they stand: memory grows with what is kept of
// them (Record), not with the text. docs/importing.md says what is kept and what is
// not.
#pragma once

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/import/input.h"
#include "daemon/import/record.h"

namespace lull::imports {

struct ReadLimits {
  size_t records = 5'000'000;
  size_t bytes = 352u << 20;       // Trace::bytes(), of all processes of a file
  size_t value_bytes = 16u << 20;  // of one event
};

// RESOURCE_EXHAUSTED beyond a limit.
absl::Status CheckLimits(size_t records, size_t bytes, const ReadLimits& limits);

// DATA_LOSS with the place where the text ends early or makes no sense;
// INVALID_ARGUMENT for what is no such trace; RESOURCE_EXHAUSTED beyond a limit.
// Nothing of a damaged file is returned.
absl::StatusOr<Trace> ReadChromeTrace(Input& input, const ReadLimits& limits = {});

}  // namespace lull::imports
