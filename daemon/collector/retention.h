// Which jobs are deleted when: those that ended too long ago, and the oldest ones
// that ended while the database is too large. A job that still reports stays.
#pragma once

#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/storage/store.h"

namespace lull::collector {

struct RetentionLimits {
  absl::Duration max_age = absl::Hours(30 * 24);
  uint64_t max_bytes = uint64_t{20} << 30;
  // A job that nobody ended and that has been silent for this long counts as ended.
  absl::Duration abandoned_after = absl::Hours(24);
};

// Used on the committer's thread, between commits.
class Retention {
 public:
  Retention(storage::StoreWriter& writer, RetentionLimits limits)
      : writer_(writer), limits_(limits) {}

  // Does one small piece of work, if there is any; true when there may be more.
  // `in_use(uuid)` keeps a job whatever its age.
  absl::StatusOr<bool> Step(absl::Time now,
                            const std::function<bool(const std::string&)>& in_use);

 private:
  absl::StatusOr<bool> MarkOne(absl::Time now,
                               const std::function<bool(const std::string&)>& in_use);

  storage::StoreWriter& writer_;
  const RetentionLimits limits_;
  absl::Time next_look_ = absl::InfinitePast();
};

}  // namespace lull::collector
