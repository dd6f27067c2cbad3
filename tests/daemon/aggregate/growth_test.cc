#include "daemon/aggregate/growth.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace lull::aggregate {
namespace {

using Points = std::vector<std::pair<double, double>>;

template <typename Value>
Points Make(size_t count, Value value) {
  Points points;
  for (size_t i = 0; i < count; ++i) {
    points.emplace_back(static_cast<double>(i), value(static_cast<double>(i)));
  }
  return points;
}

TEST(Growth, OfALineIsItsSlope) {
  auto growth = SteadyGrowth(Make(100, [](double x) { return 7 + 3 * x; }));
  ASSERT_TRUE(growth.has_value());
  EXPECT_DOUBLE_EQ(growth->slope, 3);
  EXPECT_EQ(growth->first, 50u);
  EXPECT_EQ(growth->last, 99u);
}

TEST(Growth, IsPerUnitOfXWhereverPointsAreMissing) {
  Points points = Make(200, [](double x) { return 5 * x; });
  for (auto& [x, y] : points) {
    x *= 4;
    y *= 4;
  }
  points.erase(points.begin() + 130, points.begin() + 150);
  auto growth = SteadyGrowth(points);
  ASSERT_TRUE(growth.has_value());
  EXPECT_DOUBLE_EQ(growth->slope, 5);
}

TEST(Growth, SeesThroughNoiseAndOutliers) {
  std::mt19937 random(1);
  std::uniform_real_distribution<double> noise(-4, 4);
  auto growth = SteadyGrowth(Make(400, [&](double x) {
    return 2 * x + noise(random) + (static_cast<int>(x) % 50 == 7 ? 500 : 0);
  }));
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->slope, 2, 0.05);
}

TEST(Growth, OfAStaircaseIsItsSlope) {
  auto growth =
      SteadyGrowth(Make(1000, [](double x) { return 100 * std::floor(x / 10); }));
  ASSERT_TRUE(growth.has_value());
  EXPECT_NEAR(growth->slope, 10, 0.5);
}

TEST(Growth, IsNotWarmingUp) {
  EXPECT_FALSE(SteadyGrowth(Make(200, [](double x) { return x < 90 ? 10 * x : 900; })));
  EXPECT_FALSE(SteadyGrowth(Make(200, [](double x) {
    return x < 130 ? 10 * x : 1300;  // and ends in the later half
  })));
}

TEST(Growth, IsNotASawTooth) {
  EXPECT_FALSE(SteadyGrowth(Make(
      300, [](double x) { return static_cast<double>(static_cast<int>(x) % 40); })));
}

TEST(Growth, IsNotGrowingOnce) {
  EXPECT_FALSE(SteadyGrowth(Make(200, [](double x) { return x < 150 ? 0 : 1000; })));
}

TEST(Growth, IsNotNoise) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> noise(0, 100);
    EXPECT_FALSE(SteadyGrowth(Make(300, [&](double) { return noise(random); })));
  }
}

TEST(Growth, IsNotShrinkingNorStandingStill) {
  EXPECT_FALSE(SteadyGrowth(Make(100, [](double x) { return 1000 - x; })));
  EXPECT_FALSE(SteadyGrowth(Make(100, [](double) { return 5.0; })));
}

TEST(Growth, IsNotToldOfAFewPoints) {
  EXPECT_FALSE(SteadyGrowth({}));
  EXPECT_FALSE(SteadyGrowth(Make(31, [](double x) { return x; })));
  EXPECT_TRUE(SteadyGrowth(Make(32, [](double x) { return x; })));
}

}  // namespace
}  // namespace lull::aggregate
