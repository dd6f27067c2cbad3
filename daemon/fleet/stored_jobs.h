// The jobs of a collector's store, as a fleet counts them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/fleet/edition.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::fleet {

struct StoredJob {
  storage::JobRow job;
  std::string run;  // id of the first job of its run
  uint32_t parts = 1;
  std::string collector;
  bool live = false;
  uint64_t stored_ns = 0;  // what the store had last of its run, by the store's clock
  uint32_t state = 0;      // changes with what else would make another edition

  // Of the jobs of a run the first one has what is told of all.
  bool is_first() const { return run == job.info.id(); }
  // Without slot and version.
  EditionOf edition() const;
};

// All of them, but imported traces, which are no jobs of the fleet, and those of which
// a row is damaged.
struct StoredJobs {
  std::vector<StoredJob> jobs;
  size_t damaged = 0;
};
// `collector`: whose store it is, see JobRow.
absl::StatusOr<StoredJobs> JobsOf(storage::Store& store,
                                  const query::HasRelay& has_relay,
                                  const std::string& collector);

}  // namespace lull::fleet
