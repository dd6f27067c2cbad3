#include "daemon/relay/samples/allowance.h"

#include <gtest/gtest.h>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

// A sampler whose looks at the full rate would take `share` of a core. Returns what it
// used in the second half of the time.
double Use(double share, int seconds, Allowance* allowance) {
  constexpr int kPerSecond = 20;
  double cpu = 0, half = 0;
  const int ticks = seconds * kPerSecond;
  for (int i = 1; i <= ticks; ++i) {
    cpu += share * allowance->factor() * 1e9 / kPerSecond;
    if (i == ticks / 2) half = cpu;
    allowance->Update(static_cast<uint64_t>(i) * kSecond / kPerSecond,
                      static_cast<uint64_t>(cpu));
  }
  return (cpu - half) / 1e9 / (seconds / 2.0);
}

TEST(Allowance, LeavesACheapSamplerAlone) {
  Allowance allowance;
  Use(kSamplerShare * 0.9, 600, &allowance);
  EXPECT_EQ(allowance.factor(), 1);
  EXPECT_EQ(allowance.lowered(), 0u);
}

TEST(Allowance, HoldsADearOneAtItsShare) {
  for (double times : {2.0, 5.0, 20.0}) {
    Allowance allowance;
    EXPECT_NEAR(Use(kSamplerShare * times, 600, &allowance), kSamplerShare,
                kSamplerShare * 0.25)
        << times;
    EXPECT_LT(allowance.factor(), 1);
    EXPECT_GE(allowance.lowered(), 1u);
  }
}

TEST(Allowance, PaysForAShortBurst) {
  Allowance allowance;
  Use(0.02, 2, &allowance);  // 40 ms of the 400 that are kept
  EXPECT_EQ(allowance.factor(), 1);
}

TEST(Allowance, ComesBackAfterARest) {
  Allowance allowance;
  Use(kSamplerShare * 20, 60, &allowance);
  ASSERT_LT(allowance.factor(), 0.5);
  Allowance rested = allowance;
  rested.Update(120 * kSecond, 0);
  EXPECT_EQ(rested.factor(), 1);
}

}  // namespace
}  // namespace lull::relay
