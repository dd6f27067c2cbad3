#include <gtest/gtest.h>

#include "preload/support/work_clock.h"

namespace lull {
namespace {

constexpr uint64_t kUs = 1000, kMs = 1000 * kUs;

TEST(WorkClock, CountsWhatWasWorked) {
  WorkClock clock(5 * kMs, kMs);
  uint64_t now = 5 * kMs;
  for (int i = 0; i < 99; ++i) EXPECT_FALSE(clock.is_over(now += 10 * kUs)) << i;
  EXPECT_TRUE(clock.is_over(now += 10 * kUs));
  EXPECT_TRUE(clock.is_over(now));
}

TEST(WorkClock, DoesNotCountWaitsForAProcessor) {
  WorkClock clock(0, kMs);
  EXPECT_FALSE(clock.is_over(4 * kMs));  // 0.1 ms of it
  EXPECT_FALSE(clock.is_over(8 * kMs));  // 0.2
  uint64_t now = 8 * kMs;
  for (int i = 0; i < 79; ++i) EXPECT_FALSE(clock.is_over(now += 10 * kUs)) << i;
  EXPECT_TRUE(clock.is_over(now + 10 * kUs));
}

TEST(WorkClock, EndsWhoeverWaitsForever) {
  WorkClock clock(0, kMs);
  EXPECT_FALSE(clock.is_over(WorkClock::kLongestNs - 1));
  EXPECT_TRUE(clock.is_over(WorkClock::kLongestNs));
}

TEST(WorkClock, HasNoEndWhereNoneIsAskedFor) {
  WorkClock clock(0, WorkClock::kNoEnd);
  EXPECT_FALSE(clock.is_over(3600 * 1000 * kMs));
}

}  // namespace
}  // namespace lull
