#include "daemon/compare/statistics.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/daemon/compare/made_runs.h"

namespace lull::compare {
namespace {

TEST(StatisticsTest, QuantilesOfStudentAreThoseOfTheTables) {
  EXPECT_NEAR(StudentQuantile(0.975, 1), 12.7062, 1e-4);
  EXPECT_NEAR(StudentQuantile(0.975, 2), 4.30265, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.975, 8), 2.30600, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.95, 8), 1.85955, 1e-5);
  EXPECT_NEAR(StudentQuantile(0.9995, 1), 636.619, 1e-3);
  EXPECT_NEAR(StudentQuantile(0.975, 3.5), 2.93846, 0.05);
  EXPECT_NEAR(StudentQuantile(0.975, 1e6), 1.95997, 1e-4);
  EXPECT_NEAR(StudentQuantile(0.5, 5), 0, 1e-12);
}

TEST(StatisticsTest, TheMedianOfAnEvenNumberLiesBetween) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({3}), 3);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(Median({9, 1, 5}), 5);
  EXPECT_EQ(Variance({5}), 0);
  EXPECT_EQ(Variance({1, 3}), 2);
}

TEST(StatisticsTest, AChangeHasTheIntervalOfWelch) {
  // By hand: logarithms differ by ln 1.1; the errors are those of the two variances.
  const Change change = ChangeOf({100, 101, 99}, {110, 111.1, 108.9});
  EXPECT_NEAR(change.percent, 10, 1e-9);
  const double half =
      2.776 * std::sqrt(2 * Variance({std::log(100), std::log(101), std::log(99)}) / 3);
  EXPECT_NEAR(change.high_percent, 100 * std::expm1(std::log(1.1) + half), 1e-2);
  EXPECT_NEAR(change.low_percent, 100 * std::expm1(std::log(1.1) - half), 1e-2);
  EXPECT_GT(change.detectable_percent, 100 * std::expm1(half));
}

TEST(StatisticsTest, RunsThatAgreeToTheLastDigitProveNoMillionth) {
  const Change change = ChangeOf({100, 100}, {100.001, 100.001});
  EXPECT_LT(change.low_percent, 0);
  EXPECT_GT(ChangeOf({100, 100}, {101, 101}).low_percent, 0);
}

TEST(StatisticsTest, TheRunsThatAreNeededGrowWithTheSpread) {
  const auto few = RunsNeeded(0.005, 2), more = RunsNeeded(0.02, 2);
  ASSERT_TRUE(few && more);
  EXPECT_GE(*few, 3);
  EXPECT_LE(*few, 5);
  // Four times the spread: about sixteen times as many, less what few runs cost.
  EXPECT_GE(*more, 20);
  EXPECT_LE(*more, 40);
  EXPECT_EQ(RunsNeeded(0.5, 0.1), std::nullopt);
  EXPECT_EQ(RunsNeeded(0, 2), 2);
}

TEST(StatisticsTest, ThePromisedNumberOfRunsIsEnough) {
  testing::Normal normal(4);
  const int runs = RunsNeeded(0.01, 2).value_or(0);
  ASSERT_GT(runs, 2);
  int shown = 0;
  for (int i = 0; i < 400; ++i) {
    std::vector<double> a, b;
    for (int run = 0; run < runs; ++run) {
      a.push_back(std::exp(0.01 * normal()));
      b.push_back(1.02 * std::exp(0.01 * normal()));
    }
    if (ChangeOf(a, b).low_percent > 0) ++shown;
  }
  EXPECT_GE(shown, 372);  // 93 %
}

}  // namespace
}  // namespace lull::compare
