#include "daemon/aggregate/growth.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace lull::aggregate {
namespace {

using Points = std::vector<std::pair<double, double>>;

constexpr size_t kMinPoints = 16;
constexpr size_t kMaxPoints = 256;       // pairs are compared: 32 640 of them
constexpr double kMaxFalls = 0.05;       // of all pairs
constexpr double kMinQuarterRise = 0.3;  // of what the slope says
constexpr double kMinOverNoise = 4;

double Median(std::vector<double> values) {
  auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// The later half, evenly thinned.
Points LaterHalf(const Points& points) {
  const size_t first = points.size() / 2;
  const size_t count = points.size() - first;
  const size_t step = (count + kMaxPoints - 1) / kMaxPoints;
  Points half;
  for (size_t i = first; i < points.size(); i += step) half.push_back(points[i]);
  return half;
}

bool RisesInEachQuarter(const Points& points, double slope) {
  const size_t quarter = points.size() / 4;
  double before_x = 0;
  double before_y = 0;
  for (size_t q = 0; q < 4; ++q) {
    std::vector<double> xs, ys;
    for (size_t i = q * quarter; i < (q + 1) * quarter; ++i) {
      xs.push_back(points[i].first);
      ys.push_back(points[i].second);
    }
    double x = Median(std::move(xs));
    double y = Median(std::move(ys));
    if (q > 0 && y - before_y < kMinQuarterRise * slope * (x - before_x)) return false;
    before_x = x;
    before_y = y;
  }
  return true;
}

double Noise(const Points& points, double slope) {
  std::vector<double> offsets;
  for (const auto& [x, y] : points) offsets.push_back(y - slope * x);
  double offset = Median(offsets);
  for (double& value : offsets) value = std::abs(value - offset);
  return Median(std::move(offsets));
}

}  // namespace

std::optional<Growth> SteadyGrowth(const Points& points) {
  if (points.size() < 2 * kMinPoints) return std::nullopt;
  const Points half = LaterHalf(points);
  std::vector<double> slopes;
  size_t falls = 0;
  for (size_t i = 0; i < half.size(); ++i) {
    for (size_t j = i + 1; j < half.size(); ++j) {
      double dx = half[j].first - half[i].first;
      double dy = half[j].second - half[i].second;
      if (dx <= 0) continue;
      slopes.push_back(dy / dx);
      falls += dy < 0 ? 1 : 0;
    }
  }
  if (slopes.empty()) return std::nullopt;
  const auto pairs = static_cast<double>(slopes.size());
  const double slope = Median(std::move(slopes));
  const double rise = slope * (half.back().first - half.front().first);
  if (slope <= 0 || static_cast<double>(falls) > kMaxFalls * pairs) return std::nullopt;
  if (!RisesInEachQuarter(half, slope)) return std::nullopt;
  if (rise < kMinOverNoise * Noise(half, slope)) return std::nullopt;
  return Growth{slope, points.size() / 2, points.size() - 1};
}

}  // namespace lull::aggregate
