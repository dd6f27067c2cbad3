// Finds the part of one device's idle time in which a thread waited for a processor.
// Only idle time without another cause counts.
//
// The kernel tells how long a thread waited within a span, not when. So within the
// span the longest stretches are taken first: a thread that loses its processor is
// late by milliseconds, one that runs by microseconds. A part is held back until the
// spans that reach into it are known to the end.
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
  std::vector<Span> Candidates(const RunDelay& delay) const;
  void Take(Span span);
  Idle FirstOf(const Part& part) const;

  Settled<Part, Order> parts_;
  std::vector<Span> taken_;  // disjoint, in order
};

}  // namespace lull::blame
