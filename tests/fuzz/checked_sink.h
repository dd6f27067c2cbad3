// Where an import's batches go in the tests of its parsers: whatever was read, the
// collector must take what becomes of it.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "absl/status/status.h"
#include "daemon/collector/ingest/validate.h"

namespace lull::imports {

// Ends the process at a batch that the collector would refuse.
inline auto CheckedSink() {
  return [sequence = uint64_t{0}](lull::v1::Batch* batch) mutable {
    batch->set_sequence(++sequence);
    const absl::Status status = collector::ValidateBatch(*batch);
    if (!status.ok()) {
      fprintf(stderr, "the collector would refuse it: %s\n%s\n",
              status.ToString().c_str(),
              batch->ShortDebugString().substr(0, 2000).c_str());
      abort();
    }
    return absl::OkStatus();
  };
}

}  // namespace lull::imports
