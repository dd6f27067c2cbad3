// For tests that compare how long two things take.
#pragma once

#include <algorithm>
#include <array>

#include "tests/trials.h"

namespace lull::ranks {

// The median of seven ratios of what `one` returns to what `other` returns right after
// it: what else the machine does disturbs both alike, or few of the seven. With a
// sanitizer, whose time says nothing of ours, 0.
template <typename One, typename Other>
double MedianRatio(One one, Other other) {
  if (kSanitized) return one() * 0;
  std::array<double, 7> ratios;
  for (double& ratio : ratios) {
    const double dividend = one();
    ratio = dividend / std::max<double>(other(), 1);
  }
  std::ranges::nth_element(ratios, ratios.begin() + 3);
  return ratios[3];
}

}  // namespace lull::ranks
