// From a memory snapshot to events as a relay would have sent them: what tensors took
// and gave back, in the order of time, and what the allocator held of devices.
//
// A history is the end of a longer one. What was in use when it begins is known by its
// end: blocks that are in use at the snapshot and were not allocated in it, with their
// stacks; and those that are freed in it and were not allocated in it, of which nobody
// knows who allocated them. It may also have been stopped before the snapshot: blocks
// tell, whose places the history knows otherwise.
#pragma once

#include "absl/status/status.h"
#include "daemon/import/snapshot_reader.h"
#include "daemon/import/translate.h"

namespace lull::imports {

// `key` is the process's in the job.
absl::Status TranslateSnapshot(Snapshot& snapshot, uint64_t key, ApiTable& apis,
                               const BatchSink& sink, ImportCounts* counts);

}  // namespace lull::imports
