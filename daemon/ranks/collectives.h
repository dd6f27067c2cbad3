// Collectives: which waits of all ranks belong together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/ranks/ranks.h"

namespace lull::ranks {

// The waits of a rank for one collective: DDP waits for one bucket of gradients after
// another.
struct Burst {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t line = 0;
  size_t first = 0, past = 0;  // of Rank::waits
  uint64_t step = 0;           // how many steps have begun

  // The rank was the last one. It waited too shortly to be recorded, or began when the
  // first had all: its start is when a usual transfer began.
  bool unseen = false;
  uint64_t over_ns = 0;  // of what is unseen: when the first had all

  // When the rank's wait before had ended. None where nobody knows what it did since.
  std::optional<uint64_t> since_ns;
  // From then on what was spent counts, also beside the wait before: a device that
  // waits for others computes meanwhile what the one they wait for has yet to. Absent:
  // as since_ns.
  std::optional<uint64_t> spent_since_ns;

  // Of a wait whose collective is known (daemon/ranks/identified.h); else 0.
  uint64_t collective = 0;
  uint32_t group = 0;
  uint64_t group_since_ns = 0;  // where there is a since_ns: as it, in this group
};

// How many steps have begun.
uint64_t StepAt(const Rank& rank, uint64_t time_ns);

// Waits of one line that follow each other within a step, with nothing recorded in
// between. Without steps each is by itself. Not those whose collective is known.
std::vector<Burst> BurstsOf(const Rank& rank);

// How long the rank waited in [begin, end), of the waits of this burst.
uint64_t Waited(const Rank& rank, const Burst& burst, uint64_t begin_ns,
                uint64_t end_ns);

struct Member {
  size_t rank = 0;
  size_t burst = 0;  // of Matched::bursts of the rank
};

// In the order of ranks; who takes no part is not in it. At most one is unseen.
using Collective = std::vector<Member>;

struct Matched {
  std::vector<std::vector<Burst>> bursts;  // of each rank, with those that are unseen
  std::vector<Collective> collectives;     // in the order of time
  uint64_t transfer_ns = 0;                // the median from when all had come
  uint64_t left_alone_ns = 0;              // of waits that are no bursts

  const Burst& At(const Member& member) const {
    return bursts[member.rank][member.burst];
  }
};

// Who came last.
struct Arrival {
  Member last;
  uint64_t came_ns = 0;
  uint64_t second_ns = 0;  // when the last but one came
};
Arrival ArrivalOf(const Matched& matched, const Collective& collective);

// Each burst is in one collective at most. By time there are none where all of them
// have a rank unseen: nobody knows how long a transfer takes.
Matched Match(const std::vector<Rank>& ranks);

}  // namespace lull::ranks
