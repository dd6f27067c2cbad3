// The union of intervals, as stretches that neither overlap nor touch, and how much
// of any range it covers in O(log n).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lull::blame {

class Union {
 public:
  // Cheap when intervals come in the order of their starts; any order is right.
  void Add(uint64_t start_ns, uint64_t end_ns);

  // Of [start, end), exact for what was not dropped.
  uint64_t Covered(uint64_t start_ns, uint64_t end_ns) const;
  bool Touches(uint64_t start_ns, uint64_t end_ns) const;

  // The first stretch that ends after `time_ns`; false: there is none.
  bool FirstAfter(uint64_t time_ns, uint64_t* start_ns, uint64_t* end_ns) const;

  // Forgets stretches that end at or before `time_ns`.
  void DropBefore(uint64_t time_ns);

  size_t size() const { return stretches_.size() - first_; }

 private:
  struct Stretch {
    uint64_t start_ns;
    uint64_t end_ns;
    uint64_t before_ns;  // covered by all stretches before this one
  };
  void Insert(uint64_t start_ns, uint64_t end_ns);
  size_t FirstEndingAfter(uint64_t time_ns) const;
  uint64_t CoveredBefore(uint64_t time_ns) const;

  std::vector<Stretch> stretches_;
  size_t first_ = 0;  // those before it are dropped
};

}  // namespace lull::blame
