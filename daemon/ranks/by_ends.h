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
  uint32_t stream = 0;  // a number of the rank's own
};

// All kernels of each rank, in the order of their starts; two ranks at least. If these
// are the same functions in the same order on all ranks, and so the n-th of all are one
// collective: by how much their ends are apart, at most. That is how well the ranks can
// be compared, whatever their clocks are; where kernels did not belong together it is
// large, and nobody is named. Nothing: they are not the same.
std::optional<uint64_t> SpreadOfEnds(const std::vector<std::vector<Ended>>& ranks);

// The same where ranks have different kernels: those of the edges of windows, and of
// groups of some ranks. Their times are of one clock.
struct Identity {
  uint64_t collective = 0;  // 0: nobody knows which one this kernel is of
  uint32_t members = 0;
  uint32_t group = 0;  // of a set of ranks
};
struct Together {
  std::vector<std::vector<Identity>> ranks;  // as the kernels
  uint64_t spread_ns = 0;  // ends of one collective are apart by so much, at most
};

// When kernels of a rank were recorded.
struct Traced {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

// Kernels of one function that end within `apart_ns` of each other, one of each of some
// ranks, are one collective. What is on one stream of a rank is of one communicator, as
// PyTorch mostly has it: that of the smallest set of ranks that often end together
// there, while all ranks were traced, and that no rank contradicts. A larger set is two
// communicators that ended at one time by chance, or as they are in step; a smaller one
// lacks a rank that was not traced, and that may be the one that came last: nothing is
// known of it. `traced`: of each rank, in order; none: all the time.
Together ByEnds(const std::vector<std::vector<Ended>>& ranks, uint64_t apart_ns,
                const std::vector<std::vector<Traced>>& traced = {});

}  // namespace lull::ranks
