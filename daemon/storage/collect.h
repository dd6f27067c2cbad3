// What readers share: a query whose rows become a vector, and times as arguments.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/status.h"
#include "daemon/storage/database.h"

namespace lull::storage {

// SQLite's integers are signed; what is larger counts as the end of time.
inline int64_t Clamp(uint64_t value) {
  return static_cast<int64_t>(std::min<uint64_t>(value, INT64_MAX));
}

template <typename T, typename Make, typename... Args>
absl::StatusOr<std::vector<T>> Collect(Database& db, const char* sql, Make make,
                                       const Args&... args) {
  std::vector<T> rows;
  LULL_RETURN_IF_ERROR(db.Query(
      sql, [&](const Row& row) { rows.push_back(make(row)); }, args...));
  return rows;
}

}  // namespace lull::storage
