// Sums over the events of one series in one stretch of time.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lull::aggregate {

struct Cell {
  uint64_t count = 0;  // of drawn blocks, here and in `frees`, `amount2`: their parts
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
  uint64_t min_ns = 0;  // of `count` events; 0 when there are none
  // Bytes; objects collected by the GC; busy, needed time; squares of weights; the time
  // in which hooks rested.
  uint64_t amount = 0;
  // Objects that the GC found uncollectable; kernels' time; of allocations, the blocks
  // that were forgotten.
  uint64_t amount2 = 0;
  // Memory. `live` is the change of what is live over this stretch, `peak` the
  // highest that it reached within, both relative to the start of the stretch. So
  // two stretches in a row make one, and peaks stay exact across buckets.
  uint64_t frees = 0;
  int64_t live = 0;
  int64_t peak = 0;

  bool empty() const {
    return count == 0 && total_ns == 0 && frees == 0 && live == 0 && peak == 0 &&
           amount2 == 0;
  }

  // One event that is no memory event, or the time of one that is.
  void Add(uint64_t duration_ns, uint64_t more, uint64_t more2) {
    min_ns = count == 0 ? duration_ns : std::min(min_ns, duration_ns);
    ++count;
    total_ns += duration_ns;
    max_ns = std::max(max_ns, duration_ns);
    amount += more;
    amount2 += more2;
  }
  // One event without a time of its own.
  void Count(uint64_t more) {
    ++count;
    amount += more;
  }
  // Time of an event that is counted elsewhere, or not at all.
  void AddTime(uint64_t duration_ns, uint64_t longest_ns) {
    total_ns += duration_ns;
    max_ns = std::max(max_ns, longest_ns);
  }
  void Allocate(uint64_t bytes) {
    live += static_cast<int64_t>(bytes);
    peak = std::max(peak, live);
  }
  void Release(uint64_t bytes, uint64_t blocks) {
    frees += blocks;
    live -= static_cast<int64_t>(bytes);
  }
  // For blocks whose number is not known.
  void Change(int64_t bytes) {
    live += bytes;
    peak = std::max(peak, live);
  }
  void Forget(uint64_t blocks, uint64_t bytes) {
    amount2 += blocks;
    live -= static_cast<int64_t>(bytes);
  }
  // For allocations: how many are live, if frees are counted from the start.
  int64_t blocks() const { return static_cast<int64_t>(count - frees - amount2); }

  // Continues this stretch by the one that follows it.
  void Append(const Cell& next) {
    if (next.count > 0) {
      min_ns = count == 0 ? next.min_ns : std::min(min_ns, next.min_ns);
    }
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
