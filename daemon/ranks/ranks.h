// Who waited for whom: the collectives of a job whose ranks share one clock, or clocks
// of which is known how far they are apart, from what each rank's main thread did. Pure
// (rules: docs/ranks.md).
//
// A collective ends for nobody before all ranks have come. So waits of all ranks that
// have an instant in common are one collective, and who began to wait last is who the
// others waited for. Where it is known of waits which collective they are for, they are
// matched by that, and a collective may be one of some ranks.
#pragma once

#include <cstdint>
#include <vector>

#include "daemon/ranks/host_clock.h"

namespace lull::ranks {

// A stretch of a thread's time, or of a device's. Of waits `what` is the line that
// waited, or a number of the caller's for collectives that are alike; of others one for
// what it was spent on and where, 0 if that may have been a wait for other ranks: then
// nothing is told of it.
struct Stretch {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t what = 0;
  // Of waits: equal for those of one collective on all its ranks; 0: matched by time.
  uint64_t collective = 0;
  // Of waits that have that: how many ranks take part, and the communicator, equal on
  // all of them. Where communicators are told apart, who came late to one for having
  // waited in another is not charged, but whom it had waited for.
  uint32_t members = 0;
  uint32_t group = 0;
  // Of what was spent: its thread ran code meanwhile, after a sync; and how long that
  // had blocked, told once of each sync. Of one that blocked as ever nothing is unusual
  // but the code behind it.
  bool beside_code = false;
  uint64_t blocked_ns = 0;
};

// Where a thread was seen. `what` is a number of the caller's.
struct Look {
  uint64_t time_ns = 0;
  uint32_t what = 0;
};

// All in the order of their starts; where ranks have several clocks, in common time.
struct Rank {
  std::vector<Stretch> waits;   // for other ranks; they do not overlap (what does, and
                                // tells its collective, is left alone)
  std::vector<Stretch> spent;   // recorded, and on nothing of the above; may nest
  std::vector<Look> looks;      // at the thread
  std::vector<uint64_t> steps;  // when steps began; may be empty
  // Ranks of one clock have the same, and are compared without an error. It must
  // outlive the call. nullptr: as all the others.
  const HostClock* clock = nullptr;
  // Its times may be off by so much themselves, beside its clock.
  uint64_t times_error_ns = 0;
};

// Times of two ranks are farther apart, or nearer, than they seem by so much at most.
uint64_t ErrorBetween(const Rank& a, const Rank& b, uint64_t time_ns);

// What made a rank late. No `what`: its own code, or a processor that it lacked.
struct Cause {
  bool recorded = false;
  uint32_t what = 0;     // of a Stretch; of code the Look that was seen most, or 0
  uint64_t count = 0;    // of collectives that it came late to
  uint64_t steps = 0;    // in which these were
  uint64_t late_ns = 0;  // by this it came later than the last of the others
  // What the others waited meanwhile, added up; also for ranks that came late to other
  // communicators since they had waited for this one.
  uint64_t cost_ns = 0;
};

// One of the collectives that a cause counts.
struct LateTime {
  size_t rank = 0;  // that is charged
  uint64_t came_ns = 0;
  uint64_t cost_ns = 0;
};

struct RankStory {
  uint64_t waited_ns = 0;     // until the last rank had come
  uint64_t late_steps = 0;    // with a cause below
  std::vector<Cause> causes;  // highest cost first
};

struct Story {
  std::vector<RankStory> ranks;
  std::vector<LateTime> late;  // in no order; adds up to the causes
  uint64_t collectives = 0;
  uint64_t steps = 0;           // that began; where none are known, collectives
  bool no_steps = false;        // they are these
  uint64_t unmatched_ns = 0;    // of waits of which not all ranks' were seen
  uint64_t unexplained_ns = 0;  // of waited_ns: for nobody whom the rules name
};

// Of at least two ranks.
Story WhoWaitedForWhom(const std::vector<Rank>& ranks);

}  // namespace lull::ranks
