// Ranks that came late to a collective since they had waited for others in one of
// another communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/ranks/collectives.h"

namespace lull::ranks {

// What it was made of must outlive it.
class Chains {
 public:
  Chains(const std::vector<Rank>& ranks, const Matched& matched);

  // By their numbers, nearest first: the collective that the last rank of this one had
  // left before it came, then the one that the last rank of that one had left, and so
  // on. No farther than to the last collective of the same communicator, whose members
  // left it together; less where something on the way is not known.
  std::vector<size_t> Behind(size_t collective) const;

  // Whether none of those who came last but one to a collective may have been held up
  // by the `earlier` one, too.
  bool HeldUpOnlyTheLast(size_t collective, size_t earlier) const;

 private:
  static constexpr size_t kUnknown = SIZE_MAX;

  size_t LeftBefore(const Member& member) const;
  size_t LeftBefore(size_t collective) const;
  bool MayComeFrom(const Member& member, size_t earlier) const;

  const std::vector<Rank>& ranks_;
  const Matched& matched_;
  std::vector<Arrival> arrivals_;             // by collective
  std::vector<std::vector<size_t>> came_to_;  // by rank and burst: the collective
  std::vector<size_t> left_before_;           // by collective
};

}  // namespace lull::ranks
