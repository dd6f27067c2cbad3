// Databases of older lulls, brought up to date.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "daemon/storage/database.h"

namespace lull::storage {

// Raise it with every change of the tables or of what blobs hold, and add a step that
// converts the one before. A new field of a message is no change.
inline constexpr int kSchemaVersion = 12;
inline constexpr int kOldestSchema = 5;

// Makes a database of schema `version`, kOldestSchema or later, one of kSchemaVersion.
// All or nothing, also where it is killed halfway.
absl::Status Convert(Database& db, int64_t version);

}  // namespace lull::storage
