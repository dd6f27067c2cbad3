// For tests that compare how long something takes.
#pragma once

#include <algorithm>
#include <limits>

namespace lull::ranks {

// The least of three tries of what `measure` returns: whatever else the machine does
// makes a try longer, and none shorter.
template <typename Measure>
double LeastOfThree(Measure measure) {
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) least = std::min<double>(least, measure());
  return least;
}

}  // namespace lull::ranks
