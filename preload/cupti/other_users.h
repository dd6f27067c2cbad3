// What other users of CUPTI in this process are doing (torch.profiler, above all), as
// seen by interpose.cc. Pure bookkeeping; the tracer calls it under its own lock.
#pragma once

#include <cstdint>

#include "preload/cupti/types.h"

namespace lull::cupti {

// After its last call a user is taken to be gone: once it has disabled all kinds and
// forced a flush; a plain flush may be followed by another one; a user that neither
// flushes nor enables gets the longest.
inline constexpr uint64_t kGoneAfterForcedFlushNs = 100'000'000;
inline constexpr uint64_t kGoneAfterFlushNs = 2'000'000'000;
inline constexpr uint64_t kGoneAfterSilenceNs = 10'000'000'000;

class OtherUsers {
 public:
  // Registered buffer callbacks or a timestamp callback: is about to begin.
  void prepared(uint64_t now);
  void enabled(Kind kind, uint64_t now);
  void disabled(Kind kind, uint64_t now);
  void flushed(uint32_t flag, uint64_t now);
  // A subscription of the V2 API, which does not go together with the V1 calls of
  // ours. `handle` may be anything.
  void subscribed(const void* handle, uint64_t now);
  void unsubscribed(const void* handle, uint64_t now);
  // All that anybody had on is off. Who did it may begin anew at once.
  void finalized(uint64_t now);

  bool active(uint64_t now) const;

 private:
  enum class Flush { kNone, kPlain, kForced };
  static constexpr uint32_t kMostKinds = 128;
  static constexpr uint32_t kMostHandles = 8;

  bool any_kind() const { return (kinds_[0] | kinds_[1]) != 0; }

  uint64_t kinds_[kMostKinds / 64] = {};
  const void* handles_[kMostHandles] = {};
  uint32_t handle_count_ = 0;
  uint64_t last_call_ns_ = 0;  // 0: none is there
  Flush flush_ = Flush::kNone;
};

}  // namespace lull::cupti
