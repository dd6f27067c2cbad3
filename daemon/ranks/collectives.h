// Collectives: which waits of all ranks belong together.
#pragma once

#include <cstddef>
#include <cstdint>
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
};

// Waits of one line that follow each other within a step, with nothing recorded in
// between. Without steps each is by itself.
std::vector<Burst> BurstsOf(const Rank& rank);

// How long the rank waited in [begin, end), of the waits of this burst.
uint64_t Waited(const Rank& rank, const Burst& burst, uint64_t begin_ns,
                uint64_t end_ns);

// For each rank the number of its burst. At most one of them is unseen.
using Collective = std::vector<size_t>;

struct Matched {
  std::vector<std::vector<Burst>> bursts;  // of each rank, with those that are unseen
  std::vector<Collective> collectives;     // in the order of time
  uint64_t transfer_ns = 0;                // the median from when all had come
};

// Each burst is in one collective at most. There are none where all of them have a rank
// unseen: nobody knows how long a transfer takes.
Matched Match(const std::vector<Rank>& ranks);

}  // namespace lull::ranks
