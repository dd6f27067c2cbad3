// Which collector of a fleet has a job, by the tables of a ClickHouse (tables.h).
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/fleet/clickhouse.h"

namespace lull::fleet {

struct Whereabouts {
  std::string job;        // id
  std::string collector;  // JobRow.collector
};

// Finds the job that a user means by `text` as query::FindJob does, but "" is none.
// Those that were with the collector `asker` are not there any more: one of them is
// meant only if no other is. INVALID_ARGUMENT for what may be two jobs;
// DEADLINE_EXCEEDED; else what the server says.
absl::StatusOr<std::optional<Whereabouts>> FindJob(ClickHouse& server,
                                                   const std::string& text,
                                                   const std::string& asker,
                                                   absl::Time deadline);

}  // namespace lull::fleet
