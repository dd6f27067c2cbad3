#include "daemon/relay/samples/poisson.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

TEST(PoissonClock, IsNeverDueWithoutARate) {
  PoissonClock clock(1);
  EXPECT_EQ(clock.due_ns(), UINT64_MAX);
  clock.SetRate(100, kSecond);
  EXPECT_GE(clock.due_ns(), kSecond);
  clock.SetRate(0, kSecond);
  EXPECT_EQ(clock.due_ns(), UINT64_MAX);
}

TEST(PoissonClock, ComesAsOftenAsItsRateSays) {
  PoissonClock clock(2);
  clock.SetRate(200, 0);
  int looks = 0;
  for (; clock.due_ns() < 100 * kSecond; clock.Next()) ++looks;
  EXPECT_NEAR(looks, 20'000, 5 * std::sqrt(20'000));
}

// Gaps of a Poisson process have the spread of their mean; those of a rhythm have none.
TEST(PoissonClock, HasNoRhythm) {
  PoissonClock clock(3);
  clock.SetRate(100, 0);
  double sum = 0, squares = 0;
  uint64_t last = 0;
  constexpr int kGaps = 20'000;
  for (int i = 0; i < kGaps; ++i, clock.Next()) {
    const double gap = static_cast<double>(clock.due_ns() - last) / 1e9;
    last = clock.due_ns();
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kGaps;
  EXPECT_NEAR(mean, 0.01, 0.0005);
  EXPECT_NEAR(std::sqrt(squares / kGaps - mean * mean), 0.01, 0.0005);
}

// Of a step of exactly 1 / rate each part is met as often as it is long.
TEST(PoissonClock, IsNotInStepWithTheProgram) {
  PoissonClock clock(4);
  clock.SetRate(100, 0);
  constexpr uint64_t kStep = kSecond / 100;
  int met = 0;
  constexpr int kLooks = 20'000;
  for (int i = 0; i < kLooks; ++i, clock.Next()) {
    met += clock.due_ns() % kStep < kStep / 4 ? 1 : 0;
  }
  EXPECT_NEAR(met, kLooks / 4, 5 * std::sqrt(kLooks / 4));
}

TEST(PoissonClock, KeepsItsDueTimeWhenTheRateStays) {
  PoissonClock clock(5);
  clock.SetRate(100, 0);
  const uint64_t due = clock.due_ns();
  clock.SetRate(100, kSecond);
  EXPECT_EQ(clock.due_ns(), due);
}

}  // namespace
}  // namespace lull::relay
