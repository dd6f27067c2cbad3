#include "daemon/relay/governor.h"

#include <gtest/gtest.h>

#include "preload/abi/segment.h"

namespace lull::relay {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

// Feeds `seconds` windows in each of which `percent` of the time went to hooks.
class Target {
 public:
  explicit Target(Governor* governor) : governor_(governor) {
    governor_->Update(now_, self_);
  }
  uint32_t Run(int seconds, double percent) {
    uint32_t level = 0;
    for (int i = 0; i < seconds; ++i) {
      now_ += kSecond;
      self_ += static_cast<uint64_t>(percent / 100 * kSecond);
      level = governor_->Update(now_, self_);
    }
    return level;
  }

 private:
  Governor* governor_;
  uint64_t now_ = 77 * kSecond;
  uint64_t self_ = 123;
};

TEST(Governor, LeavesATargetWithinTheBudgetAlone) {
  Governor governor(1.0);
  EXPECT_EQ(Target(&governor).Run(100, 0.9), 0u);
  EXPECT_EQ(governor.highest(), 0u);
}

TEST(Governor, TakesOneStepForEachWindowOverTheBudgetAndNoMoreThanThereAre) {
  Governor governor(1.0);
  Target target(&governor);
  EXPECT_EQ(target.Run(1, 3.0), 1u);
  EXPECT_EQ(target.Run(1, 3.0), 2u);
  EXPECT_EQ(target.Run(10, 3.0), uint32_t{abi::kThinLaunches});
}

TEST(Governor, StaysBetweenHalfTheBudgetAndTheBudget) {
  Governor governor(1.0);
  Target target(&governor);
  target.Run(2, 3.0);
  EXPECT_EQ(target.Run(60, 0.7), 2u);
}

TEST(Governor, GivesDetailBackOnceItHasBeenCalmForLong) {
  Governor governor(1.0);
  Target target(&governor);
  target.Run(2, 3.0);
  EXPECT_EQ(target.Run(Governor::kCalmWindows - 1, 0.1), 2u);
  EXPECT_EQ(target.Run(1, 0.1), 1u);
  EXPECT_EQ(target.Run(Governor::kCalmWindows, 0.1), 0u);
  EXPECT_EQ(governor.highest(), 2u);
}

TEST(Governor, WithoutABudgetNeverThins) {
  Governor governor(0);
  EXPECT_EQ(Target(&governor).Run(10, 90), 0u);
}

TEST(Governor, ACounterThatRunsBackwardsIsNoCost) {
  Governor governor(1.0);
  governor.Update(kSecond, 1000 * kSecond);
  EXPECT_EQ(governor.Update(3 * kSecond, 5), 0u);
}

}  // namespace
}  // namespace lull::relay
