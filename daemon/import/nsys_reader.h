// Reads SQLite exports of NVIDIA's Nsight Systems (schema 2.9 and later, which come
// without a table where nothing of its kind was recorded, and with columns that
// differ).
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/import/chrome_reader.h"
#include "daemon/import/record.h"

namespace lull::imports {

// The file begins as databases of SQLite do.
bool IsSqlite(const std::string& path);

// One Trace of each process, by its pid. DATA_LOSS for a database that is damaged,
// INVALID_ARGUMENT for one of somebody else's, RESOURCE_EXHAUSTED beyond a limit.
absl::StatusOr<std::vector<Trace>> ReadNsysTrace(const std::string& path,
                                                 const ReadLimits& limits = {});

}  // namespace lull::imports
