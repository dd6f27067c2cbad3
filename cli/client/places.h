// The files of one user: sockets and spools in the runtime directory, the store
// in the data directory.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lull {

// The runtime directory, made if need be. Errors say who owns it or why it
// cannot be written, and how to choose another one.
absl::StatusOr<std::string> PrepareRuntimeDirectory();

// $XDG_DATA_HOME/lull, else ~/.local/share/lull: where the private collector
// keeps its database.
std::string DataDirectory();
std::string DatabasePath();
absl::Status PrepareDataDirectory();

// Inside the runtime directory.
std::string CollectorSocketPath(absl::string_view runtime);
std::string RelaySocketPath(absl::string_view runtime, absl::string_view job_id);
// Spools of jobs that report to the private collector, and of the others. A spool
// that could not be delivered stays there, one directory per job.
std::string PrivateSpools(absl::string_view runtime);
std::string RemoteSpools(absl::string_view runtime);

}  // namespace lull
