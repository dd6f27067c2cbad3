// The two intervals of step_cost.h. Both go by order alone.
#include <algorithm>
#include <cmath>

#include "daemon/base/median.h"
#include "daemon/steps/step_cost.h"

namespace lull::steps {
namespace {

constexpr double kOutside = 0.05;  // of both tails together
constexpr double kNormal = 1.96;   // what leaves so much of a normal distribution
// Windows are put together until there are no more than twice as many groups.
constexpr size_t kGroups = 24;
// Groups are steps that follow one another. Each sample has at least so many.
constexpr size_t kFewestGroups = 6;
constexpr size_t kStepsInGroup = 3;

// The medians of groups of `length` neighbours; what is left over joins the last.
std::vector<double> Grouped(const std::vector<double>& values, size_t length) {
  std::vector<double> groups;
  for (size_t i = 0; i + length <= values.size(); i += length) {
    const size_t end = i + 2 * length > values.size() ? values.size() : i + length;
    groups.push_back(Median({values.begin() + static_cast<ptrdiff_t>(i),
                             values.begin() + static_cast<ptrdiff_t>(end)}));
  }
  return groups;
}

// How many of `count` values may lie beyond an end of the interval: the largest k with
// P(fewer than k of `count` fair coins) <= kOutside / 2.
size_t BeyondEachEnd(size_t count) {
  double probability = std::pow(0.5, static_cast<double>(count));  // of i heads
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    sum += probability;
    if (sum > kOutside / 2) return i;
    probability *= static_cast<double>(count - i) / static_cast<double>(i + 1);
  }
  return 0;
}

}  // namespace

std::optional<Estimate> MedianOf(const std::vector<double>& values) {
  if (values.size() < kFewestWindows) return std::nullopt;
  std::vector<double> groups =
      Grouped(values, std::max<size_t>(1, values.size() / kGroups));
  std::sort(groups.begin(), groups.end());
  const size_t beyond = BeyondEachEnd(groups.size());
  if (beyond == 0) return std::nullopt;
  return Estimate{Median(groups), groups[beyond - 1], groups[groups.size() - beyond]};
}

std::optional<Estimate> RatioOf(const std::vector<double>& first,
                                const std::vector<double>& second) {
  const std::vector<double> a = Grouped(first, kStepsInGroup);
  const std::vector<double> b = Grouped(second, kStepsInGroup);
  if (a.size() < kFewestGroups || b.size() < kFewestGroups) return std::nullopt;
  std::vector<double> ratios;
  for (double from : a) {
    for (double to : b) ratios.push_back(to / from);
  }
  std::sort(ratios.begin(), ratios.end());
  const auto n = static_cast<double>(a.size());
  const auto m = static_cast<double>(b.size());
  const double off = kNormal * std::sqrt(n * m * (n + m + 1) / 12);
  const double beyond = std::floor(n * m / 2 - off);
  if (beyond < 1) return std::nullopt;
  const auto index = static_cast<size_t>(beyond) - 1;
  return Estimate{Median(ratios) - 1, ratios[index] - 1,
                  ratios[ratios.size() - 1 - index] - 1};
}

}  // namespace lull::steps
