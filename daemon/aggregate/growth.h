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

// `points`: x ascends. Only the later half counts, and it needs 16 points. It grows
// steadily when almost no later point lies below an earlier one, each quarter lies
// above the one before by a good part of what the slope predicts, and the whole growth
// is several times the distance of the points from the line.
std::optional<Growth> SteadyGrowth(
    const std::vector<std::pair<double, double>>& points);

}  // namespace lull::aggregate
