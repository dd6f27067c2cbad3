// One collective as the rules see it, and many of them that have one cause.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/ranks/collectives.h"
#include "daemon/ranks/excess.h"
#include "daemon/ranks/ranks.h"

namespace lull::ranks {

struct Judged {
  const Collective* members = nullptr;
  uint32_t group = 0;
  size_t last = 0;         // the rank
  uint64_t came_ns = 0;    // when
  uint64_t second_ns = 0;  // when the last but one came
  uint64_t late_ns = 0;    // what each other rank waited for this one alone, at least
  uint64_t cost_ns = 0;    // what they waited, added up
  uint64_t step = 0;
  bool unseen = false;             // when the last one came is not known exactly
  bool sure = false;               // it came last whatever the errors of clocks are
  const Before* before = nullptr;  // what the last rank did before
  std::optional<Excess> excess;

  // Who is charged: the last rank, or whom that one had waited for elsewhere. `excess`
  // is this one's then, and `step`.
  size_t charged = 0;
  bool passed_on = false;
};

// Of one rank. What came of it elsewhere adds to the cost; the rank itself was late
// once.
Cause SumOf(const std::vector<const Judged*>& late);

// By rank, of collectives that one cause explains: of the members of each any may be
// the last one by chance. Who costs more than chance allows?
std::vector<bool> CostMore(const std::vector<const Judged*>& all, size_t ranks);

}  // namespace lull::ranks
