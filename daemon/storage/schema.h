// The tables, and opening a file that may be anything.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/storage/database.h"

namespace lull::storage {

inline constexpr int kApplicationId = 0x6c756c6c;  // "lull"

// Opens the database at `path` for writing, makes the tables in one that is new or
// empty and converts those of older schemas (conversions.h). A file that is something
// else, cut off, written by a newer lull or not writable is left untouched; the error
// names it and what to do.
absl::StatusOr<std::unique_ptr<Database>> OpenForWriting(const std::string& path);

// A further connection to a database that OpenForWriting has opened.
absl::StatusOr<std::unique_ptr<Database>> OpenForReading(const std::string& path);

}  // namespace lull::storage
