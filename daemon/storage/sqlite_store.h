// The store in one SQLite file, in WAL mode.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/storage/store.h"

namespace lull::storage {

// Opens or creates the database at `path`; its folder must exist. Only one process
// writes at a time: a second one gets FAILED_PRECONDITION that names the first. See
// OpenForWriting (schema.h) for files that are not ours or not whole.
absl::StatusOr<std::unique_ptr<Store>> OpenSqliteStore(const std::string& path);

}  // namespace lull::storage
