// Reads the collector's clock beside our own, in bursts of a few calls (docs/ranks.md,
// "Clocks"). A single call may be delayed by milliseconds; of a burst one mostly is
// not.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/base/clock.h"
#include "daemon/base/clock_identity.h"
#include "ingest.grpc.pb.h"

namespace lull::relay {

inline constexpr absl::Duration kFirstClockPause = absl::Seconds(1);
inline constexpr absl::Duration kLongestClockPause = absl::Seconds(10);
inline constexpr absl::Duration kFreshClock = absl::Milliseconds(500);

// Of one stream. For one thread.
class ClockWatch {
 public:
  // Reads nothing if the job's times are of another clock than `own`: its spool is
  // delivered after a boot, or it is an imported trace.
  ClockWatch(const lull::v1::JobInfo& job, std::string token,
             const ClockIdentity& own = OwnClock());

  // At once, then after a second, and at last every ten seconds.
  bool Due() const { return SteadyNow() >= next_; }
  bool reads() const { return next_ != absl::InfiniteFuture(); }
  // The last burst is so old that one before the end of the job tells more.
  bool DueBeforeTheEnd() const { return reads() && SteadyNow() - last_ > kFreshClock; }
  void Stop() { next_ = absl::InfiniteFuture(); }
  // One burst; blocks for as long as the calls take, 100 ms or a call of at most a
  // second. nullopt if there is nothing to tell: no answer, or the collector has our
  // clock or is too old. After the latter two nothing is due any more.
  std::optional<lull::v1::ClockReading> Read(lull::v1::Ingest::StubInterface& stub);

 private:
  const std::string token_;
  const ClockIdentity own_;
  absl::Time next_ = absl::InfinitePast();
  absl::Time last_ = absl::InfinitePast();
  absl::Duration pause_ = kFirstClockPause;
};

}  // namespace lull::relay
