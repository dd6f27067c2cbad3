// Collectives of which nobody knows the communicator, as in traces of other profilers:
// by their order, and by what all collectives have in common. A rank's kernel of one
// cannot end before all ranks have come, and then it ends at once: on eight V100 of one
// host within 1 to 7 us of each other, while they began up to 7.6 ms apart (a DLRM of
// facebookresearch/param).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace lull::ranks {

// A kernel that communicates. `function`: a number of the caller's for what it does,
// the same on all ranks.
struct Ended {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t function = 0;
};

// All kernels of each rank, in the order of their starts; two ranks at least. If these
// are the same functions in the same order on all ranks, and so the n-th of all are one
// collective: by how much their ends are apart, at most. That is how well the ranks can
// be compared, whatever their clocks are; where kernels did not belong together it is
// large, and nobody is named. Nothing: they are not the same.
std::optional<uint64_t> SpreadOfEnds(const std::vector<std::vector<Ended>>& ranks);

}  // namespace lull::ranks
