// Pipes that stay clear of the standard descriptors, which may be closed in a job
// that was started so.
#pragma once

#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"

namespace lull {

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};

// Both ends close-on-exec and above 2.
absl::StatusOr<Pipe> MakePipe();

// Opens /dev/null on those of 0, 1 and 2 that are closed, so that nothing that is
// opened later is taken for stdout. Call it after the job's process is forked.
void FillStandardDescriptors();

}  // namespace lull
