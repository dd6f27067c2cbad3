// Finds the part of one device's idle time in which a thread waited for a processor.
// Only idle time without another cause counts.
//
// The kernel tells how long a thread waited within a span, not when. A wait that the
// device ran dry for made a gap that is hardly longer: stretches that are longer than
// the delay by 1 ms at most, and no more than twice as long, are taken first, the
// longest before others. The rest of the delay is put where it ends in the middle of
// the time in which it can have ended, and takes what longer stretches lie there. So a
// second of code is not robbed of all that its thread had waited before. A part is held
// back until the spans that reach into it are known to the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/base/settled.h"
#include "daemon/blame/blame.h"

namespace lull::blame {

struct Part {
  Idle idle;
  bool residual = false;  // no cause but the code: may have been the run queue
};

class RunQueue {
 public:
  // Parts come in the order of time.
  void Append(const Part& part);
  // Parts that start before the end of the span have all been appended.
  void Apply(const RunDelay& delay);
  // Start of the first part that ends after `time_ns`; kNever: none.
  uint64_t FirstReachedFrom(uint64_t time_ns);
  // Tells what starts before `time_ns`.
  void Release(uint64_t time_ns, Sink& sink);

  size_t size() const { return parts_.size(); }

 private:
  struct Span {
    uint64_t start_ns;
    uint64_t end_ns;
  };
  struct Order {
    bool operator()(const Part& a, const Part& b) const {
      return a.idle.start_ns < b.idle.start_ns;
    }
  };
  // Of this thread's residual parts what lies in the span and is not taken yet, the
  // longest first; of parts up to `limit_ns` long, or of those that are longer.
  std::vector<Span> Candidates(const RunDelay& delay, Span span, uint64_t limit_ns,
                               bool longer) const;
  // Returns what is left of `delay_ns`.
  uint64_t TakeOf(const std::vector<Span>& spans, uint64_t delay_ns);
  void Take(Span span);
  Idle FirstOf(const Part& part) const;

  Settled<Part, Order> parts_;
  std::vector<Span> taken_;  // disjoint, in order
};

}  // namespace lull::blame
