// A query whose rows become a vector.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "daemon/base/status.h"
#include "daemon/storage/database.h"

namespace lull::storage {

template <typename T, typename Make, typename... Args>
absl::StatusOr<std::vector<T>> Collect(Database& db, const char* sql, Make make,
                                       const Args&... args) {
  std::vector<T> rows;
  LULL_RETURN_IF_ERROR(db.Query(
      sql, [&](const Row& row) { rows.push_back(make(row)); }, args...));
  return rows;
}

}  // namespace lull::storage
