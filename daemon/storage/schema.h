// The tables, and opening a file that may be anything.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/storage/database.h"

namespace lull::storage {

inline constexpr int kApplicationId = 0x6c756c6c;  // "lull"
// Raise it with every change of the tables or of what blobs hold, and add a step that
// converts the one before. A new field of a message is no change.
inline constexpr int kSchemaVersion = 17;
inline constexpr int kOldestSchema = 5;

// Opens the database at `path` for writing, makes the tables in one that is new or
// empty and converts those of older schemas. A file that is something
// else, cut off, written by a newer lull or not writable is left untouched; the error
// names it and what to do.
absl::StatusOr<std::unique_ptr<Database>> OpenForWriting(const std::string& path);

// A further connection to a database that OpenForWriting has opened.
absl::StatusOr<std::unique_ptr<Database>> OpenForReading(const std::string& path);

// Makes a database of schema `version`, kOldestSchema or later, one of kSchemaVersion.
// All or nothing, also where it is killed halfway.
absl::Status Convert(Database& db, int64_t version);

}  // namespace lull::storage
