#include "daemon/relay/control/pace.h"

#include <gtest/gtest.h>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

TEST(Pace, WaitsForNothingBeforeTheFirstStep) { EXPECT_EQ(Pace().NextUntil(), 0u); }

TEST(Pace, OneFarLongerStepIsNotHowLongTheyAreAndTwoInARowAre) {
  Pace pace;
  pace.AddStep({1, 50 * kSecond, 50 * kSecond + 12 * kMs});
  const uint64_t grace = pace.NextUntil() - (50 * kSecond + 12 * kMs);
  EXPECT_GT(grace, kSecond);
  EXPECT_LT(grace, 2 * kSecond);
  pace.AddStep({2, 51 * kSecond, 141 * kSecond});
  EXPECT_EQ(pace.NextUntil(), 141 * kSecond + grace);
  pace.AddStep({3, 141 * kSecond, 141 * kSecond + 12 * kMs});
  EXPECT_EQ(pace.NextUntil(), 141 * kSecond + 12 * kMs + grace);
  pace.AddStep({4, 142 * kSecond, 172 * kSecond});
  pace.AddStep({5, 172 * kSecond, 202 * kSecond});
  EXPECT_GT(pace.NextUntil(), 300 * kSecond);
}

TEST(Pace, NoLengthIsTooLargeForIt) {
  Pace pace;
  pace.AddStep({1, 0, ~uint64_t{0} / 2});
  EXPECT_GT(pace.NextUntil(), ~uint64_t{0} / 2);
  pace.AddStep({2, 7, 3});  // no step of ours
  EXPECT_GT(pace.NextUntil(), ~uint64_t{0} / 2);
}

}  // namespace
}  // namespace lull::relay
