// Whether a job is over, as far as its relay can see: the keeper says so, or the keeper
// is gone and nothing is left of the job. Time comes from the caller.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "daemon/base/unique_fd.h"
#include "ingest.pb.h"

namespace lull::relay {

class JobLife {
 public:
  // `grace`: how long the relay listens to targets that outlive the job's own process.
  explicit JobLife(absl::Duration grace)
      : grace_ns_(static_cast<uint64_t>(absl::ToInt64Nanoseconds(grace))) {}

  // The job's own process, to be watched.
  void Started(UniqueFd pidfd) { pidfd_ = std::move(pidfd); }
  // The keeper says so. `exit_status`: -1 if it is not known.
  void Ended(int exit_status, uint64_t now_ns);
  // From now on nobody says when it ends.
  void LoseKeeper(uint64_t now_ns);

  // `targets`: some are still read.
  bool IsOver(uint64_t now_ns, bool targets);
  // For how long IsOver() has said so without a break; since LoseKeeper() at most.
  uint64_t OverFor(uint64_t now_ns) const { return now_ns - alive_ns_; }

  // Fills in what is known about the end of the job.
  void Fill(uint64_t now_ns, lull::v1::JobEnd* end) const;

 private:
  const uint64_t grace_ns_;
  UniqueFd pidfd_;
  std::optional<int> exit_status_;  // set: its own process has ended
  uint64_t ended_ns_ = 0;           // when exit_status_ came
  bool keeper_ = true;
  uint64_t quiet_since_ns_ = 0;  // no target, and its own process gone
  uint64_t alive_ns_ = 0;        // when it was last not over
};

}  // namespace lull::relay
