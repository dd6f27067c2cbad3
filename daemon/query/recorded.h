// When a job recorded. Most jobs do all the time; one that was started dormant, armed
// or disarmed does so in stretches.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/storage/store.h"
#include "query.pb.h"

namespace lull::query {

class Recorded {
 public:
  static absl::StatusOr<Recorded> Load(storage::StoreReader& reader,
                                       const storage::JobRow& job);

  bool always() const { return always_; }
  bool never() const { return !always_ && stretches_.empty(); }
  // The part of [begin_ns, end_ns) that was recorded.
  uint64_t Within(uint64_t begin_ns, uint64_t end_ns) const;
  // Fills in what a reply says about it. `end_ns`: when the job ended, or was last
  // heard of.
  void Fill(const storage::JobRow& job, uint64_t end_ns, lull::v1::Job* out) const;

 private:
  bool always_ = true;
  std::vector<storage::StretchRow> stretches_;  // in the order of time
};

}  // namespace lull::query
