// Sums over the events of one series in one stretch of time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/aggregate/event.h"

namespace lull::aggregate {

struct Cell {
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
  uint64_t amount = 0;   // bytes; objects collected by the GC
  uint64_t amount2 = 0;  // objects that the GC found uncollectable
  // Memory. `live` is the change of what is live over this stretch, `peak` the
  // highest that it reached within, both relative to the start of the stretch. So
  // two stretches in a row make one, and peaks stay exact across buckets.
  uint64_t frees = 0;
  int64_t live = 0;
  int64_t peak = 0;

  bool empty() const { return count == 0 && frees == 0 && live == 0 && peak == 0; }

  // One event that is no memory event, or the time of one that is.
  void Add(uint64_t duration_ns, uint64_t more, uint64_t more2) {
    ++count;
    total_ns += duration_ns;
    max_ns = std::max(max_ns, duration_ns);
    amount += more;
    amount2 += more2;
  }
  void Allocate(uint64_t bytes) {
    live += static_cast<int64_t>(bytes);
    peak = std::max(peak, live);
  }
  void Release(uint64_t bytes) {
    ++frees;
    live -= static_cast<int64_t>(bytes);
  }

  // Continues this stretch by the one that follows it.
  void Append(const Cell& next) {
    count += next.count;
    total_ns += next.total_ns;
    max_ns = std::max(max_ns, next.max_ns);
    amount += next.amount;
    amount2 += next.amount2;
    frees += next.frees;
    peak = std::max(peak, live + next.peak);
    live += next.live;
  }

  friend bool operator==(const Cell&, const Cell&) = default;
};

}  // namespace lull::aggregate
