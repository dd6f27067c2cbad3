// The per-user collector, started on demand. It stops by itself when idle.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lull {

// True when somebody listens on the unix socket at `path`.
bool AcceptsConnections(const std::string& path);

// Makes sure that the private collector answers on its socket in `runtime`, and
// starts it if not. Any number of callers may do so at once: a file lock lets one
// of them start it while the others wait. When it fails to start, the error holds
// what it said on stderr. Its log is `runtime`/collector.log.
absl::Status EnsurePrivateCollector(absl::string_view runtime,
                                    absl::Duration timeout = absl::Seconds(15));

}  // namespace lull
