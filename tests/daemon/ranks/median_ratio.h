// For tests that compare how long two things take.
#pragma once

#include <algorithm>
#include <array>

namespace lull::ranks {

// The median of seven ratios of what `one` returns to what `other` returns right after
// it: what else the machine does disturbs both alike, or few of the seven.
template <typename One, typename Other>
double MedianRatio(One one, Other other) {
  std::array<double, 7> ratios;
  for (double& ratio : ratios) {
    const double dividend = one();
    ratio = dividend / std::max<double>(other(), 1);
  }
  std::ranges::nth_element(ratios, ratios.begin() + 3);
  return ratios[3];
}

}  // namespace lull::ranks
