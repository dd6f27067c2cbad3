// When tracing was on: [Trace, Untrace), from marks that come in any order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/base/settled.h"

namespace lull::blame {

struct TraceMark {
  uint64_t time_ns = 0;
  bool on = false;
};

class TracedTime {
 public:
  void Add(TraceMark mark) { marks_.Add(mark); }
  void Settle() { marks_.Settle(); }

  // The next mark, not yet passed; kNever: none.
  uint64_t next_ns() const;
  // Passes it; true: tracing changed.
  bool Pass();

  bool on() const { return on_; }
  uint64_t since_ns() const { return since_ns_; }  // while on
  void End(uint64_t time_ns);

  // [start, end) lies in one stretch of tracing; that which is on has no end.
  bool Contains(uint64_t start_ns, uint64_t end_ns) const;

  // Forgets stretches that ended before `time_ns`.
  void DropBefore(uint64_t time_ns);
  size_t size() const { return marks_.size() + passed_.size(); }

 private:
  struct Order {  // an end before a start of the same time: two stretches
    bool operator()(const TraceMark& a, const TraceMark& b) const {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : a.on < b.on;
    }
  };
  struct Stretch {
    uint64_t start_ns;
    uint64_t end_ns;
  };
  Settled<TraceMark, Order> marks_;
  std::vector<Stretch> passed_;  // in order
  bool on_ = false;
  uint64_t since_ns_ = 0;
};

}  // namespace lull::blame
