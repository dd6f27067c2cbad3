// Up to when everything that ran on the GPU is known. It follows from marks of the
// shim, and from when tracing was on. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lull::collector {

// A change of tracing is committed a moment after it happened.
inline constexpr uint64_t kCommitSlackNs = 1'000'000'000;
// Once tracing is off, the records that are still to come do so within this.
inline constexpr uint64_t kLastRecordsNs = 10'000'000'000;

class TracingMarks {
 public:
  // Every operation that ended before the mark has been delivered. A mark counts only
  // after its batch: those operations were committed before it, but perhaps to a ring
  // that the relay had read already. They are in the next batch at the latest.
  void Mark(uint64_t time_ns) { next_mark_ns_ = std::max(next_mark_ns_, time_ns); }
  void EndBatch() { mark_ns_ = next_mark_ns_; }

  // Tracing is on from `time_ns` on, or off, or warms up. An older one changes nothing.
  void Change(uint64_t time_ns, bool traced, bool warms_up) {
    if (time_ns < changed_ns_) return;
    changed_ns_ = time_ns;
    traced_ = traced;
    flowing_ = traced || warms_up;
  }
  bool traced() const { return traced_; }  // as of the latest change
  uint64_t changed_ns() const { return changed_ns_; }

  // Operations that ended before it are here. Marks come with records; without tracing
  // there are neither, and nothing to wait for.
  uint64_t CompleteUntil(uint64_t as_of_ns) const {
    const bool complete =
        mark_ns_ >= changed_ns_ || as_of_ns > changed_ns_ + kLastRecordsNs;
    if (flowing_ || !complete) return mark_ns_;
    return std::max(mark_ns_, as_of_ns - std::min(as_of_ns, kCommitSlackNs));
  }

 private:
  uint64_t mark_ns_ = 0;
  uint64_t next_mark_ns_ = 0;  // of the batch at hand
  uint64_t changed_ns_ = 0;
  bool traced_ = false;
  bool flowing_ = false;  // records come
};

}  // namespace lull::collector
