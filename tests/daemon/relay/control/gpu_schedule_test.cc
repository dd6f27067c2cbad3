#include "daemon/relay/control/gpu_schedule.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

using abi::TracingState;
using Verdict = GpuSchedule::Verdict;

constexpr Verdict kBySteps{false, TracingState::kOff};
constexpr Verdict kOff{true, TracingState::kOff};
constexpr Verdict kWarmUp{true, TracingState::kWarmUp};
constexpr Verdict kActive{true, TracingState::kActive};

GpuPlan Clock(uint64_t wait_ms, uint64_t warmup_ms, uint64_t active_ms) {
  GpuPlan plan;
  plan.always_by_clock = true;
  plan.clock = {0, wait_ms * kMs, warmup_ms * kMs, active_ms * kMs};
  return plan;
}

// A process that makes GPU calls all the time.
class Process {
 public:
  Process(const GpuPlan& plan, GpuClock* clock) : schedule_(plan, clock) {}
  Verdict At(uint64_t ms, bool hold = false) {
    return schedule_.Update(77 * kSecond + ms * kMs, ++calls_, hold);
  }
  Verdict IdleAt(uint64_t ms) {
    return schedule_.Update(77 * kSecond + ms * kMs, calls_, false);
  }
  void Step(uint64_t ms) { schedule_.StepSeen(ms * kMs); }

 private:
  GpuSchedule schedule_;
  uint64_t calls_ = 0;
};

TEST(GpuSchedule, GoesByTheClockWhereThatWasAskedFor) {
  GpuClock clock;
  Process process(Clock(200, 50, 100), &clock);
  EXPECT_EQ(process.IdleAt(0), kOff) << "no GPU work yet";
  EXPECT_EQ(process.At(1000), kOff);
  EXPECT_EQ(process.At(1199), kOff);
  EXPECT_EQ(process.At(1200), kWarmUp);
  EXPECT_EQ(process.At(1250), kActive);
  EXPECT_EQ(process.At(1349), kActive);
  EXPECT_EQ(process.At(1350), kOff);
  EXPECT_EQ(process.At(1350 + 250), kActive);
  process.Step(1);
  EXPECT_EQ(process.At(1350 + 251), kActive) << "steps change nothing";
}

TEST(GpuSchedule, WithoutStepsTheClockTakesOverAfterAWhile) {
  GpuClock clock;
  Process process(GpuPlan(), &clock);
  EXPECT_EQ(process.At(0), kBySteps);
  EXPECT_EQ(process.At(3000), kBySteps);
  EXPECT_EQ(process.At(3001), kOff);
  EXPECT_EQ(process.At(3999), kOff);
  EXPECT_EQ(process.At(4000), kWarmUp) << "the first GPU call began the cycle";
  EXPECT_EQ(process.At(4200), kActive);
  EXPECT_EQ(process.At(5200), kOff);
  EXPECT_EQ(process.At(5200 + 4200), kActive);
}

TEST(GpuSchedule, TheClockLetsGoWhenStepsAppear) {
  GpuClock clock;
  Process process(GpuPlan(), &clock);
  process.At(0);
  process.At(3100);
  EXPECT_EQ(process.At(4500), kActive);
  process.Step(100);
  EXPECT_EQ(process.At(4600), kBySteps);
  EXPECT_EQ(process.At(4600 + 3000), kBySteps);
  EXPECT_TRUE(process.At(4600 + 3001).by_clock) << "and takes over again";
}

TEST(GpuSchedule, LongStepsAreWaitedFor) {
  GpuClock clock;
  Process process(GpuPlan(), &clock);
  process.At(0);
  process.Step(2'000);
  process.At(2'000);
  process.Step(1);  // the longest counts, not the last
  EXPECT_EQ(process.At(2'001), kBySteps);
  EXPECT_EQ(process.At(22'001), kBySteps);
  EXPECT_TRUE(process.At(22'002).by_clock);
}

TEST(GpuSchedule, AStepThatClaimsToHaveTakenForeverIsNotWaitedForForever) {
  GpuClock clock;
  GpuSchedule schedule(GpuPlan(), &clock);
  schedule.Update(kSecond, 1, false);
  schedule.StepSeen(~uint64_t{0});
  schedule.Update(2 * kSecond, 2, false);
  uint64_t later = 2 * kSecond + 10 * GpuSchedule::kLongestStepNs;
  EXPECT_FALSE(schedule.Update(later, 3, false).by_clock);
  EXPECT_TRUE(schedule.Update(later + 1, 4, false).by_clock);
}

TEST(GpuSchedule, AProcessThatDoesNothingOnTheGpuIsNotTraced) {
  GpuClock clock;
  Process process(GpuPlan(), &clock);
  process.At(0);
  EXPECT_EQ(process.IdleAt(60'000), kBySteps);
  EXPECT_TRUE(process.At(60'001).by_clock);
}

TEST(GpuSchedule, TheWindowsOfAJobsProcessesFallTogether) {
  GpuClock clock;
  Process first(GpuPlan(), &clock);
  Process second(GpuPlan(), &clock);
  int together = 0;
  for (uint64_t ms = 0; ms < 19'000; ms += 10) {
    Verdict a = first.At(ms);
    if (ms < 700) continue;  // the second one is late
    Verdict b = second.At(ms);
    if (!a.by_clock || !b.by_clock) continue;
    EXPECT_EQ(a, b) << "at " << ms << " ms";
    together += a == kActive;
  }
  EXPECT_EQ(together, 300) << "three windows of a second";
}

TEST(GpuSchedule, WhoComesInTheMiddleOfAWindowWaitsForTheNext) {
  GpuClock clock;
  Process first(Clock(200, 50, 100), &clock);
  Process second(Clock(200, 50, 100), &clock);
  first.At(0);
  EXPECT_EQ(first.At(300), kActive);
  EXPECT_EQ(second.At(300), kOff);
  EXPECT_EQ(second.At(349), kOff);
  EXPECT_EQ(second.At(350 + 200), kWarmUp);
}

TEST(GpuSchedule, AWindowThatWasHeldIsLeftOutAsAWhole) {
  GpuClock clock;
  Process process(Clock(200, 50, 100), &clock);
  process.At(0);
  EXPECT_EQ(process.At(260), kActive);
  EXPECT_EQ(process.At(270, /*hold=*/true), kOff);
  EXPECT_EQ(process.At(280, /*hold=*/false), kOff) << "no half window";
  EXPECT_EQ(process.At(350 + 260), kActive);
}

TEST(GpuSchedule, SkipsTheBeginningAndEndsAfterSoManyWindows) {
  GpuClock clock;
  GpuPlan plan = Clock(20, 0, 10);
  plan.clock.skip_first_ns = 1000 * kMs;
  plan.repeat = 2;
  Process process(plan, &clock);
  std::vector<uint64_t> active;
  for (uint64_t ms = 0; ms < 3000; ms += 5) {
    if (process.At(ms) == kActive) active.push_back(ms);
  }
  EXPECT_EQ(active, (std::vector<uint64_t>{1020, 1025, 1050, 1055}));
}

TEST(GpuSchedule, WithoutAWaitItIsAlwaysActive) {
  GpuClock clock;
  Process process(Clock(0, 0, 10), &clock);
  for (uint64_t ms = 0; ms < 100; ++ms) EXPECT_EQ(process.At(ms), kActive);
}

TEST(GpuSchedule, OtherModesHaveNoWindows) {
  GpuClock clock;
  for (lull::v1::GpuMode mode :
       {lull::v1::GPU_MODE_HOST, lull::v1::GPU_MODE_CONTINUOUS}) {
    GpuPlan plan;
    plan.mode = mode;
    Process process(plan, &clock);
    EXPECT_EQ(process.At(0), kBySteps);
    EXPECT_EQ(process.At(10'000), kBySteps);
  }
}

}  // namespace
}  // namespace lull::relay
