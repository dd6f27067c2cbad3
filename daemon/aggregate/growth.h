// Whether a series of values grows steadily, and by how much: what a memory leak looks
// like, and what warming up, fluctuating and growing once do not.
#pragma once

#include <optional>
#include <utility>
#include <vector>

namespace lull::aggregate {

struct Growth {
  double slope = 0;  // the median of the slopes between any two points (Theil-Sen)
  size_t first = 0;  // indices of the points that it was judged by: the later half
  size_t last = 0;
};

// `points`: x ascends. Judged by the later half, of at least 16 points. It grows
// steadily when almost no later point lies below an earlier one, each quarter of it
// lies above the one before by a good part of what the slope says, and what it grew by
// in all is several times what the points lie off the line.
std::optional<Growth> SteadyGrowth(
    const std::vector<std::pair<double, double>>& points);

}  // namespace lull::aggregate
