// Who waited for whom: the collectives of a job whose ranks share one clock, or clocks
// of which is known how far they are apart, from what each rank's main thread did. Pure
// (rules: docs/ranks.md).
//
// A collective ends for nobody before all ranks have come. So waits of all ranks that
// have an instant in common are one collective, and who began to wait last is who the
// others waited for.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/ranks/host_clock.h"

namespace lull::ranks {

// A stretch of a thread's time. Of waits `what` is the line that waited; of others a
// number of the caller's for what it was spent on and where, 0 if that may have been a
// wait for other ranks: then nothing is told of it.
struct Stretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t what = 0;
};

// Where a thread was seen. `what` is a number of the caller's.
struct Look {
  uint64_t time_ns = 0;
  uint32_t what = 0;
};

// All in the order of their starts; where ranks have several clocks, in common time.
struct Rank {
  std::vector<Stretch> waits;   // for other ranks; they do not overlap
  std::vector<Stretch> spent;   // recorded, and on nothing of the above; may nest
  std::vector<Look> looks;      // at the thread
  std::vector<uint64_t> steps;  // when steps began; may be empty
  // Ranks of one clock have the same, and are compared without an error. It must
  // outlive the call. nullptr: as all the others.
  const HostClock* clock = nullptr;
};

// Times of two ranks are farther apart, or nearer, than they seem by so much at most.
uint64_t ErrorBetween(const Rank& a, const Rank& b, uint64_t time_ns);

// What made a rank late. No `what`: its own code, or a processor that it lacked.
struct Cause {
  bool recorded = false;
  uint32_t what = 0;     // of a Stretch; of code the Look that was seen most, or 0
  uint64_t count = 0;    // of collectives
  uint64_t steps = 0;    // in which these were
  uint64_t late_ns = 0;  // by this it came later than the last of the others
  uint64_t cost_ns = 0;  // what the others waited meanwhile, added up
};

struct RankStory {
  uint64_t waited_ns = 0;     // until the last rank had come
  uint64_t late_steps = 0;    // with a cause below
  std::vector<Cause> causes;  // highest cost first
};

struct Story {
  std::vector<RankStory> ranks;
  uint64_t collectives = 0;
  uint64_t steps = 0;         // that began; where none are known, collectives
  uint64_t unmatched_ns = 0;  // of waits that have no instant with all ranks in common
  uint64_t unexplained_ns = 0;  // of waited_ns: for nobody whom the rules name
};

// Of at least two ranks.
Story WhoWaitedForWhom(const std::vector<Rank>& ranks);

}  // namespace lull::ranks
