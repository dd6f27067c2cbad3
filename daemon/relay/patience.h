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
  // `naming`: functions get names, for which all else waits. Who does not wait at all
  // waits for no names either.
  absl::Duration Left(uint64_t progress, bool naming) {
    const uint64_t now = MonotonicNs();
    // What has its names is on its way, and not as old as they are. That counts once.
    const bool named = naming_ && !naming && !named_;
    naming_ = naming;
    named_ = named_ || named;
    const bool waits = naming && still_ > absl::ZeroDuration();
    const absl::Duration still = waits ? std::max(still_, kNames) : still_;
    if (progress > progress_ || named) {
      progress_ = std::max(progress, progress_);
      moved_ns_ = now;
    }
    return std::min(whole_ - absl::Nanoseconds(now - start_ns_),
                    still - absl::Nanoseconds(now - moved_ns_));
  }

 private:
  // A short job is over before the symbols of its libraries are read from a cold disk,
  // or on a full machine: nothing moves then, and yet it goes on.
  static constexpr absl::Duration kNames = absl::Seconds(5);

  absl::Duration whole_;
  absl::Duration still_;
  uint64_t start_ns_;
  uint64_t moved_ns_;
  uint64_t progress_ = 0;
  bool naming_ = false;  // as of the last look
  bool named_ = false;
};

}  // namespace lull::relay
