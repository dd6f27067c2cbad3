// Which jobs are deleted when: those that ended too long ago, and the oldest ones
// that ended while the database is too large, or while the disk is full. A job that
// still reports stays, also one that sleeps, and so does one that is pinned.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
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
  // But not before this collector has run for so long: the job's relay may be about to
  // come back.
  absl::Duration settle = absl::Seconds(30);
};

// Used on the committer's thread, between commits.
class Retention {
 public:
  Retention(storage::StoreWriter& writer, RetentionLimits limits)
      : writer_(writer), limits_(limits) {}

  // Does one small piece of work, if there is any; true when there may be more.
  // `now`: by the store's clock. `in_use(uuid)` keeps a job whatever its age.
  absl::StatusOr<bool> Step(absl::Time now,
                            absl::FunctionRef<bool(const std::string&)> in_use);

  // The disk is full. Each call makes the oldest job that is over go; but no more than
  // half of what there was when the disk got full, as somebody else may be filling it.
  void NeedRoom();
  // Something could be written again.
  void HasRoom();

 private:
  absl::StatusOr<bool> MarkOne(absl::Time now,
                               absl::FunctionRef<bool(const std::string&)> in_use);
  bool IsOver(const storage::JobRow& job, absl::Time now) const;

  storage::StoreWriter& writer_;
  const RetentionLimits limits_;
  absl::Time next_look_ = absl::InfinitePast();
  absl::Time first_step_ = absl::InfiniteFuture();
  bool needs_room_ = false;
  uint64_t least_bytes_ = 0;  // that are left by NeedRoom(); 0: the disk is not full
};

}  // namespace lull::collector
