// The middle of some values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lull {

// Of an even number the mean of the two in the middle; 0 of none.
inline double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 != 0) return *middle;
  return (*std::max_element(values.begin(), middle) + *middle) / 2;
}

// Of an even number the lower of the two, so that it is one of the values; 0 of none.
template <typename T>
T LowerMedian(std::vector<T> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace lull
