// How long somebody waits for something that may go on, slowly, or not at all.
#pragma once

#include <algorithm>
#include <cstdint>

#include "absl/time/time.h"
#include "daemon/base/clock.h"

namespace lull::relay {

// CLOCK_MONOTONIC throughout: the wall clock may be set meanwhile.
class Patience {
 public:
  // `whole`: at most this long. `still`: no longer than this without progress.
  Patience(absl::Duration whole, absl::Duration still)
      : whole_(whole), still_(still), start_ns_(MonotonicNs()), moved_ns_(start_ns_) {}

  // `progress` is any number that grows as long as something goes on. <= 0: enough.
  absl::Duration Left(uint64_t progress) { return Left(progress, still_); }
  // With another patience for what is known to go on slowly just now.
  absl::Duration Left(uint64_t progress, absl::Duration still) {
    uint64_t now = MonotonicNs();
    if (progress > progress_) {
      progress_ = progress;
      moved_ns_ = now;
    }
    return std::min(whole_ - absl::Nanoseconds(now - start_ns_),
                    still - absl::Nanoseconds(now - moved_ns_));
  }

 private:
  absl::Duration whole_;
  absl::Duration still_;
  uint64_t start_ns_;
  uint64_t moved_ns_;
  uint64_t progress_ = 0;
};

}  // namespace lull::relay
