#include "daemon/relay/control/governor.h"

#include <gtest/gtest.h>

#include "preload/abi/segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

// A target that spends `hooks` and `gpu` percent of its time in our code, looked at
// ten times a second.
class Target {
 public:
  explicit Target(Governor* governor) : governor_(governor) {
    governor_->Update(now_, hooks_, gpu_);
  }
  Governor::Verdict Run(int seconds, double hooks, double gpu = 0) {
    return RunFor(1000 * seconds, hooks, gpu);
  }
  Governor::Verdict RunFor(int ms, double hooks, double gpu = 0) {
    Governor::Verdict verdict;
    for (int i = 0; i < ms; i += 100) verdict = Tick(hooks, gpu);
    return verdict;
  }
  uint32_t Thinning(int seconds, double hooks) { return Run(seconds, hooks).thinning; }

  // As Run(), in a duty cycle of `active` out of `period` seconds where tracing is not
  // held; hooks cost what thinning leaves of `hooks`.
  Governor::Verdict RunWindows(int seconds, double hooks, double gpu, int active,
                               int period) {
    Governor::Verdict verdict;
    for (int i = 0; i < 10 * seconds; ++i) {
      bool on = i % (10 * period) < 10 * active && !verdict.gpu_hold;
      verdict = Tick(hooks, on ? gpu : 0);
    }
    return verdict;
  }

  double CostPercent() const {
    return 100.0 * static_cast<double>(hooks_ + gpu_) /
           static_cast<double>(now_ - kStart);
  }
  double GpuPercent() const {
    return 100.0 * static_cast<double>(gpu_) / static_cast<double>(now_ - kStart);
  }

 private:
  static constexpr uint64_t kStart = 77 * kSecond;

  Governor::Verdict Tick(double hooks, double gpu) {
    now_ += kSecond / 10;
    hooks_ += static_cast<uint64_t>(hooks / 1000 * kSecond);
    gpu_ += static_cast<uint64_t>(gpu / 1000 * kSecond);
    return governor_->Update(now_, hooks_, gpu_);
  }

  Governor* governor_;
  uint64_t now_ = kStart;
  uint64_t hooks_ = 123;
  uint64_t gpu_ = 45;
};

TEST(Governor, LeavesATargetWithinTheBudgetAlone) {
  Governor governor(1.0);
  EXPECT_EQ(Target(&governor).Run(100, 0.6, 0.3), Governor::Verdict());
  EXPECT_EQ(governor.highest(), 0u);
}

TEST(Governor, TakesOneStepForEachWindowOverTheBudgetAndNoMoreThanThereAre) {
  Governor governor(1.0);
  Target target(&governor);
  EXPECT_EQ(target.Thinning(1, 30.0), uint32_t{abi::kThinNativeStacks});
  EXPECT_EQ(target.Thinning(10, 3.0), uint32_t{abi::kThinLaunches});
}

TEST(Governor, LeavesAJobAloneWhoseStartIsCostlyForASecond) {
  Governor governor(1.0);
  Target target(&governor);
  target.Run(1, 0.1);
  target.Run(1, 8.0);  // imports
  target.Run(60, 0.3);
  EXPECT_EQ(governor.highest(), 0u);
  // What was used is there again.
  target.Run(1, 8.0);
  EXPECT_EQ(target.Run(60, 0.3), Governor::Verdict());
  EXPECT_EQ(governor.highest(), 0u);
}

TEST(Governor, ThinsWhatIsOverTheBudgetForLong) {
  for (double percent : {1.1, 1.5, 3.0, 10.0, 50.0}) {
    SCOPED_TRACE(percent);
    Governor governor(1.0);
    Target target(&governor);
    int seconds = 0;
    while (target.Thinning(1, percent) == 0 && seconds < 1000) ++seconds;
    // A third of the credit is used up: 10 s of the budget.
    EXPECT_NEAR(seconds, 10 / (percent - 1), 1.01);
  }
}

TEST(Governor, AWatchOfSecondsUsesNoCreditForHooks) {
  Governor governor(1.0);
  governor.BeginWatch();
  Target target(&governor);
  EXPECT_EQ(target.Thinning(1, 4.0), uint32_t{abi::kThinLaunches});

  Governor light(1.0);
  light.BeginWatch();
  EXPECT_EQ(Target(&light).Thinning(5, 0.9), 0u);
}

TEST(Governor, AWatchOfSecondsForgivesTheFirstLookAtEachLine) {
  Governor governor(1.0);
  governor.BeginWatch();
  Target target(&governor);
  EXPECT_EQ(target.RunFor(300, 3.0).thinning, 0u);  // 9 ms
  EXPECT_EQ(target.Thinning(5, 0.3), 0u);
  EXPECT_EQ(governor.highest(), 0u);
}

TEST(Governor, SecondsWithAWindowSayNothingOfThoseWithout) {
  Governor governor(1.0);
  Target target(&governor);
  target.Thinning(2, 14.0);
  EXPECT_EQ(governor.highest(), uint32_t{abi::kThinLaunches});
  // Launches cost 2 % in one second of five, as they are recorded there alone.
  // There are never five others in a row.
  target.Run(4, 0.1);
  EXPECT_EQ(target.Run(1, 2.0, 0.5).thinning, uint32_t{abi::kThinLaunches});
  EXPECT_EQ(target.Run(1, 0.1).thinning, uint32_t{abi::kThinNativeStacks});
}

TEST(Governor, AWatchOfSecondsHasAWindowAndThenWhatItsBudgetAllows) {
  Governor governor(1.0);
  governor.BeginWatch();
  Target target(&governor);
  // 18 ms, of which hooks leave 5 a second.
  EXPECT_EQ(target.RunFor(300, 0.5, 6), Governor::Verdict());
  governor.WindowEnded();
  EXPECT_TRUE(target.RunFor(100, 0.5).gpu_hold);
  EXPECT_TRUE(target.RunFor(2000, 0.5).gpu_hold);
  EXPECT_EQ(target.RunFor(6000, 0.5), Governor::Verdict());
}

TEST(Governor, AnOldWatchWhoseHooksOweNothingHoldsItsWindows) {
  Governor governor(1.0, 0.8);
  governor.BeginWatch();
  Target target(&governor);
  governor.WindowEnded();
  target.RunWindows(3000, 0.75, 10, 1, 20);  // 1.25 % in all
  EXPECT_EQ(governor.highest(), 0u);
  EXPECT_LE(target.CostPercent(), 1.02);
  EXPECT_GE(target.GpuPercent(), 0.2);
}

TEST(Governor, TheFirstWindowOfAWatchTakesNoMoreThanTwoThirdsOfTheCredit) {
  Governor governor(1.0);
  governor.BeginWatch();
  Target target(&governor);
  EXPECT_FALSE(target.RunFor(1900, 0.4, 10).gpu_hold);  // 10.4 % - 1 %: 179 ms
  EXPECT_TRUE(target.RunFor(400, 0.4, 10).gpu_hold);
}

TEST(Governor, BurstsOfHooksCostNoMoreThanTheBudget) {
  Governor governor(1.0);
  Target target(&governor);
  Governor::Verdict verdict;
  for (int second = 0; second < 3000; ++second) {
    // Each step takes away half of what there is left.
    verdict = target.Run(1, (second % 10 < 5 ? 4.0 : 0.2) / (1 << verdict.thinning));
  }
  EXPECT_LE(target.CostPercent(), 1.1);
  EXPECT_GT(governor.highest(), 0u);
}

TEST(Governor, StaysBetweenHalfTheBudgetAndTheBudget) {
  Governor governor(1.0);
  Target target(&governor);
  target.Thinning(1, 14.0);
  EXPECT_EQ(target.Thinning(60, 0.7), uint32_t{abi::kThinNativeStacks});
}

TEST(Governor, GivesDetailBackOnceItHasBeenCalmForLong) {
  Governor governor(1.0);
  Target target(&governor);
  target.Thinning(2, 14.0);
  EXPECT_EQ(target.Thinning(Governor::kCalmWindows - 1, 0.1),
            uint32_t{abi::kThinLaunches});
  EXPECT_EQ(target.Thinning(1, 0.1), uint32_t{abi::kThinNativeStacks});
  EXPECT_EQ(target.Thinning(Governor::kCalmWindows, 0.1), 0u);
  EXPECT_EQ(governor.highest(), uint32_t{abi::kThinLaunches});
}

TEST(Governor, AWindowMayCostMoreThanTheBudgetIfTheWaitMakesUpForIt) {
  Governor governor(1.0);
  Target target(&governor);
  // 4.5 % in one second of five.
  EXPECT_EQ(target.RunWindows(300, 0.05, 4.5, 1, 5), Governor::Verdict());
  EXPECT_NEAR(target.GpuPercent(), 0.9, 0.02);
}

TEST(Governor, HoldsWindowsBackUntilTheBudgetHasRecovered) {
  Governor governor(1.0);
  Target target(&governor);
  bool held = false;
  for (int i = 0; i < 600; ++i) {
    held |= target.RunWindows(5, 0.1, 20, 1, 5).gpu_hold;
  }
  EXPECT_TRUE(held);
  EXPECT_EQ(governor.highest(), 0u) << "the hooks are not what costs";
  EXPECT_LE(target.CostPercent(), 1.01);
  EXPECT_GE(target.GpuPercent(), 0.6) << "what the budget allows is used";
}

TEST(Governor, ContinuousTracingThatCostsTooMuchBecomesWindows) {
  Governor governor(1.0);
  Target target(&governor);
  target.RunWindows(3000, 0.2, 3, 1, 1);
  EXPECT_LE(target.CostPercent(), 1.02);
  EXPECT_GE(target.GpuPercent(), 0.6);
}

TEST(Governor, WhereHooksAreTheLargerPartDetailGoesBeforeWindows) {
  Governor governor(1.0);
  Target target(&governor);
  Governor::Verdict verdict;
  int seconds = 0;
  while (!verdict.gpu_hold && ++seconds < 1000) {
    verdict = target.Run(1, 0.9, 0.5);
    if (verdict.gpu_hold) break;
  }
  EXPECT_TRUE(verdict.gpu_hold);
  EXPECT_EQ(verdict.thinning, uint32_t{abi::kThinLaunches});
}

TEST(Governor, HooksThatTakeTheWholeBudgetLeaveNoneForTracing) {
  Governor governor(1.0);
  Target target(&governor);
  target.Run(100, 1.5, 0.1);
  EXPECT_TRUE(target.Run(100, 1.5, 0).gpu_hold);
  EXPECT_FALSE(target.Run(300, 0.1, 0).gpu_hold) << "and give it back";
}

TEST(Governor, AWindowIsNotReleasedToBeHeldAtOnce) {
  Governor governor(1.0);
  Target target(&governor);
  int changes = 0;
  bool before = false;
  for (int second = 0; second < 600; ++second) {
    bool hold = target.RunWindows(1, 0, 5, 1, 1).gpu_hold;
    changes += hold != before;
    before = hold;
  }
  EXPECT_GE(changes, 4);
  EXPECT_LE(changes, 600 / 15) << "about once in half a minute";
}

TEST(Governor, WithoutABudgetTakesNothingAway) {
  Governor governor(0);
  EXPECT_EQ(Target(&governor).Run(10, 90, 90), Governor::Verdict());
}

TEST(Governor, ACounterThatRunsBackwardsIsNoCost) {
  Governor governor(1.0);
  governor.Update(kSecond, 1000 * kSecond, 1000 * kSecond);
  EXPECT_EQ(governor.Update(3 * kSecond, 5, 5), Governor::Verdict());
}

}  // namespace
}  // namespace lull::relay
