// The files of one user: sockets in the runtime directory, spools and the store in the
// data directory.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lull {

// The runtime directory, made if need be. Errors say who owns it or why it
// cannot be written, and how to choose another one.
absl::StatusOr<std::string> PrepareRuntimeDirectory();

// $XDG_DATA_HOME/lull, else ~/.local/share/lull, else (no home is known) "data" in the
// runtime directory: where the private collector keeps its database.
std::string DataDirectory();
std::string DatabasePath();
absl::Status PrepareDataDirectory();

// Inside the runtime directory.
std::string CollectorSocketPath(absl::string_view runtime);
std::string RelaySocketPath(absl::string_view runtime, absl::string_view job_id);

// Where the spool of a new job goes, one directory per job: in the data directory,
// because the runtime directory is removed when its user logs out, and a job may go on;
// in the runtime directory where the data directory cannot be used or its disk is full.
// `is_private`: the job reports to the private collector. Makes nothing but the data
// directory.
std::string SpoolDirectory(absl::string_view runtime, bool is_private,
                           absl::string_view job_id);
// All places of such spools. One that could not be delivered stays there.
std::vector<std::string> SpoolPlaces(absl::string_view runtime, bool is_private);

}  // namespace lull
