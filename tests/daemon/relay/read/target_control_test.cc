// What a relay writes into the control block of a target whose hooks cost more than its
// budget.
#include "daemon/relay/read/target_control.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>

#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

constexpr uint64_t kStepNs = 10 * kMs;
constexpr uint64_t kHour = 3600 * kSecond;

// A training whose hooks take `percent` of its time, whatever detail they leave out.
class CostlyTraining : public testing::Test {
 protected:
  void Begin(const lull::v1::JobSettings& settings,
             v1::GpuMode mode = v1::GPU_MODE_HOST, bool attached = false) {
    GpuPlan plan;
    plan.mode = mode;
    target_ =
        std::make_unique<TargetControl>(reader_, settings, plan, nullptr, 77, attached);
    if (attached) target_->Arm(plan, now_);
  }
  void BeginWatch(v1::GpuMode mode = v1::GPU_MODE_HOST) {
    segment_.view().control().recorded_halvings.store(0);
    look_ns_ = 100 * kMs;  // as a relay looks
    Begin({}, mode, /*attached=*/true);
  }
  void RunFor(uint64_t seconds, double percent, bool with_steps = true) {
    for (uint64_t ran = 0; ran < seconds * kSecond; ran += look_ns_) {
      Look(percent, with_steps);
    }
  }
  void Look(double percent, bool with_steps = true) {
    now_ += look_ns_;
    for (; with_steps && begin_ns_ + length_ns_ <= now_; begin_ns_ += length_ns_) {
      target_->StepSeen({++steps_, begin_ns_, begin_ns_ + length_ns_, Rested()});
      // Its end, of a process that is not traced.
      segment_.view().header().gpu_self_ns.fetch_add(kUs);
    }
    if (!with_steps) begin_ns_ = now_;
    hooks_ns_ += static_cast<uint64_t>(percent / 100 * static_cast<double>(look_ns_));
    target_->Govern(now_, hooks_ns_);
  }
  void RunUntilSampled(double percent) {
    for (int i = 0; i < 600 && Halvings() == 0; ++i) RunFor(1, percent);
    RunFor(1, percent);
  }
  uint32_t Halvings() { return segment_.view().control().recorded_halvings.load(); }
  uint32_t ControlSteps() { return segment_.view().control().control_steps.load(); }

  // Of a step whose number is told by steps_.
  uint64_t Rested() {
    return can_rest_ && Halvings() != 0 && steps_ % 4 != 0 ? kStepNs : 0;
  }

  FakeSegment segment_;
  SegmentReader reader_{segment_.base()};
  std::unique_ptr<TargetControl> target_;
  uint64_t look_ns_ = 250 * kMs;
  uint64_t length_ns_ = kStepNs;
  uint64_t now_ = 50 * kSecond;
  uint64_t begin_ns_ = now_;  // of the step that goes on
  uint64_t hooks_ns_ = 0;
  uint64_t steps_ = 0;
  bool can_rest_ = true;
};

TEST_F(CostlyTraining, RecordsSomeStepsOnceNothingElseHoldsItsBudget) {
  Begin({});
  RunFor(20, 2.2);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u) << "30 s worth of the budget are not used up yet";
  EXPECT_EQ(ControlSteps(), 0u);
  EXPECT_EQ(target_->first_sampled_step(), 0u);
  RunUntilSampled(2.2);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
  const uint64_t first = target_->first_sampled_step();
  EXPECT_GT(first, 2'000u);
  EXPECT_LT(first, steps_);
  RunFor(5, 0.5);
  EXPECT_EQ(target_->first_sampled_step(), first);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinSteps});
}

// It may be over after five.
TEST_F(CostlyTraining, RecordsSomeStepsWithinThreeSecondsOfAWatch) {
  for (const double percent : {1.95, 2.0}) {
    SCOPED_TRACE(percent);
    BeginWatch();
    RunFor(1, percent);
    EXPECT_EQ(Halvings(), 0u);
    RunFor(2, percent);
    EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
  }
}

// The first look at each line is none of the reasons.
TEST_F(CostlyTraining, RecordsSomeStepsOfAWatchAtOnceWhereItIsFarOver) {
  for (const double percent : {2.3, 3.1, 8.0}) {
    SCOPED_TRACE(percent);
    BeginWatch();
    for (int i = 0; i < 3; ++i) Look(8);
    EXPECT_EQ(Halvings(), 0u);
    for (int i = 0; i < 2; ++i) Look(percent);
    EXPECT_EQ(Halvings(), percent < 3 ? 2u : 3u);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinNativeStacks});
    RunFor(3, 0.6);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinSteps});
  }
}

// While a hook runs another thread may have the processor: 4 ms of one look.
TEST_F(CostlyTraining, RecordsAllStepsOfAWatchInWhichAHookWasInterrupted) {
  for (int dear = 0; dear < 8; ++dear) {
    SCOPED_TRACE(dear);
    BeginWatch(v1::GPU_MODE_WINDOW);
    for (int i = 0; i < 8; ++i) Look(i == dear ? 4.7 : 0.7);
    RunFor(20, 0.7);
    EXPECT_EQ(Halvings(), 0u);
  }
}

// Steps of which none is left out at once.
TEST_F(CostlyTraining, ADearLookOfAWatchTakesNotAllDetail) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  length_ns_ = 100 * kMs;
  for (int i = 0; i < 4; ++i) Look(6);
  for (int i = 0; i < 200; ++i) {
    Look(0.75);
    ASSERT_LE(segment_.view().control().thinning.load(),
              uint32_t{abi::kThinNativeStacks})
        << i;
  }
}

// They are few in a watch of seconds: less detail comes first.
TEST_F(CostlyTraining, OfLongStepsInAWatchNoneIsLeftOutAtOnce) {
  BeginWatch();
  length_ns_ = 40 * kMs;
  RunFor(1, 8);
  EXPECT_EQ(segment_.view().control().thinning.load(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

// The relay hears of a step when it has ended.
TEST_F(CostlyTraining, RecordsSomeStepsOfAWatchThatShowsNoneAtFirst) {
  BeginWatch();
  RunFor(2, 3, /*with_steps=*/false);
  EXPECT_EQ(Halvings(), 0u);
  RunFor(2, 3);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
}

// No quarter of a second is without one.
TEST_F(CostlyTraining, RecordsSomeStepsOfAWatchWithManyWindows) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  for (int i = 0; i < 45; ++i) {
    const bool traced = i % 3 == 2;
    segment_.view().header().cupti_state.store(static_cast<uint32_t>(
        traced ? abi::CuptiState::kTracing : abi::CuptiState::kReady));
    Look(traced ? 9 : 3);
  }
  EXPECT_GE(Halvings(), StepShare::kMostAtOnce);
}

// Within a second it has used up what flows in within five.
TEST_F(CostlyTraining, AWatchHasItsFirstWindowWhole) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  const auto hold = [this] { return segment_.view().control().gpu_hold.load(); };
  const auto step = [this] {
    segment_.view().header().gpu_self_ns.fetch_add(5 * kMs);
    Look(0.3);
  };
  target_->TracingSeen(now_, abi::TracingState::kWarmUp);
  step();
  target_->TracingSeen(now_, abi::TracingState::kActive);
  for (int i = 0; i < 10; ++i) step();
  EXPECT_EQ(hold(), 0u);
  target_->TracingSeen(now_, abi::TracingState::kOff);
  Look(0.3);
  EXPECT_EQ(hold(), 1u);
}

// Of steps of 200 ms it begins after five seconds.
TEST_F(CostlyTraining, AWatchHasItsFirstWindowWholeAlsoLater) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  length_ns_ = 200 * kMs;
  RunFor(1, 3);
  RunFor(5, 0.7);
  for (int i = 0; i < 20; ++i) {
    target_->TracingSeen(
        now_, i < 4 ? abi::TracingState::kWarmUp : abi::TracingState::kActive);
    segment_.view().header().gpu_self_ns.fetch_add(3 * kMs);
    Look(0.7);
    EXPECT_EQ(segment_.view().control().gpu_hold.load(), 0u);
  }
  target_->TracingSeen(now_, abi::TracingState::kOff);
  Look(0.7);
  EXPECT_EQ(segment_.view().control().gpu_hold.load(), 1u);
}

// What is recorded in windows alone no share of steps makes less.
TEST_F(CostlyTraining, RecordsAllStepsOfAWatchWhoseWindowsAloneAreDear) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  for (int i = 0; i < 45; ++i) {
    const bool traced = i % 4 >= 2;
    segment_.view().header().cupti_state.store(static_cast<uint32_t>(
        traced ? abi::CuptiState::kTracing : abi::CuptiState::kReady));
    Look(traced ? 6 : 0.6);
  }
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

// The first look at each line takes longer.
TEST_F(CostlyTraining, RecordsAllStepsOfAWatchOfWhichTheFirstSecondAloneIsDear) {
  for (const double percent : {3.0, 5.0, 6.0, 8.0}) {
    SCOPED_TRACE(percent);
    BeginWatch();
    RunFor(1, percent, /*with_steps=*/false);
    RunFor(20, 0.9);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
    EXPECT_EQ(Halvings(), 0u);
  }
}

// None of its steps may have been seen to end.
TEST_F(CostlyTraining, RecordsAllOfAWatchThatShowsNoSteps) {
  BeginWatch();
  RunFor(4, 3, /*with_steps=*/false);
  Look(3);  // what went on before says nothing of its steps
  Look(3);
  EXPECT_EQ(Halvings(), 0u);
}

// Of half a second: launched ahead, then waited for. No mean of a second tells what
// they cost to a tenth. Whatever a look begins with.
TEST_F(CostlyTraining, OfLongStepsInAWatchAreSampledWhereTheyAreClearlyOver) {
  for (const double launching : {2.4, 7.5}) {  // in the mean 0.99 and 3.03
    for (int first = 0; first < 5; ++first) {
      SCOPED_TRACE(testing::Message() << launching << " from " << first);
      BeginWatch();
      length_ns_ = 500 * kMs;
      RunFor(1, 4);
      for (int i = 0; i < 38; ++i) Look((first + i) % 5 < 2 ? launching : 0.05);
      EXPECT_GE(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
      EXPECT_EQ(Halvings() != 0, launching > 5);
      segment_.view().control().recorded_halvings.store(0);
    }
  }
}

// Of three seconds: the launches alone are two spans of short steps.
TEST_F(CostlyTraining, OfLongStepsInAWatchThePartThatLaunchesIsNotTheMean) {
  length_ns_ = 3 * kSecond;
  for (int first = 0; first < 30; ++first) {
    SCOPED_TRACE(first);
    BeginWatch();
    RunFor(3, 4);
    for (int i = 0; i < 20; ++i) Look((first + i) % 30 < 10 ? 2.8 : 0.05);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
    EXPECT_EQ(Halvings(), 0u);
  }
}

// Steps of two lengths in turn: a span of two of the short ones is part of a long one.
TEST_F(CostlyTraining, OfUnequalStepsInAWatchTheLongOnesCountWhole) {
  for (int before = 0; before < 14; ++before) {
    SCOPED_TRACE(before);
    length_ns_ = kStepNs;
    BeginWatch();
    RunFor(1, 4, /*with_steps=*/false);
    for (int i = 0; i < before; ++i) Look(0.93);
    for (int i = 0; i < 38 - before; ++i) {
      length_ns_ = (i % 14 < 2 ? 200 : 1200) * kMs;
      Look(i % 14 < 6 ? 2.1 : 0.05);  // in the mean 0.93
    }
    EXPECT_EQ(Halvings(), 0u);
  }
}

// Longer than two spans, and dear: it is recorded whole in any case. Whenever it
// begins.
TEST_F(CostlyTraining, PaysForNoEvaluationEarlyInAWatch) {
  for (const uint64_t length : {20 * kMs, 100 * kMs, 300 * kMs, 500 * kMs}) {
    for (int looks = 0; looks < 30; ++looks) {
      SCOPED_TRACE(testing::Message() << length << ", " << looks);
      BeginWatch();
      length_ns_ = length;
      RunFor(1, 5, /*with_steps=*/false);
      EXPECT_EQ(segment_.view().control().thinning.load(),
                uint32_t{abi::kThinLaunches});
      for (int i = 0; i < looks; ++i) Look(0.7);
      for (int i = looks; i < 60; ++i) Look(4, /*with_steps=*/false);
      EXPECT_EQ(Halvings(), 0u);

      BeginWatch();  // one that ends
      length_ns_ = length;
      RunFor(1, 5, /*with_steps=*/false);
      for (int i = 0; i < looks; ++i) Look(0.7);
      length_ns_ = kHour;
      for (int i = 0; i < 35; ++i) Look(4);
      length_ns_ = now_ - begin_ns_;
      Look(0.7);
      length_ns_ = length;
      for (int i = looks; i < 10; ++i) Look(0.7);
      EXPECT_EQ(Halvings(), 0u);
    }
  }
}

// Loaded by so many workers that all of their steps come at once, and then the wait for
// the next ones.
TEST_F(CostlyTraining, OfStepsInBurstsInAWatchTheWaitCounts) {
  for (const int quick : {2, 4}) {
    for (const int wait : {8, 12, 16}) {
      const int period =
          quick + wait;  // looks; in each of the quick ones two steps end
      for (int first = 0; first < period; ++first) {
        SCOPED_TRACE(testing::Message() << quick << " " << wait << " " << first);
        BeginWatch();
        length_ns_ = 50 * kMs;
        RunFor(1, 5, /*with_steps=*/false);
        for (int i = first; i < first + 40; ++i) {
          const bool waits = i % period >= quick;
          const uint64_t since = std::max(now_ - begin_ns_, 50 * kMs);
          length_ns_ = waits ? kHour : i % period == 0 ? since : 50 * kMs;
          Look(waits ? 0.05 : 0.8 * period / quick);
        }
        EXPECT_EQ(Halvings(), 0u);
      }
    }
  }
}

// What it took with more detail is forgiven: then a burst is no reason.
TEST_F(CostlyTraining, ABurstAfterADearStartOfAWatchIsNoReason) {
  BeginWatch();
  RunFor(1, 5, /*with_steps=*/false);
  RunFor(1, 0.5);
  for (int i = 0; i < 13; ++i) Look(1.6);
  RunFor(10, 0.9);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

// A little is not clearly over: what five seconds are worth has to be used up.
TEST_F(CostlyTraining, AWatchThatIsALittleOverIsSampledLater) {
  for (const double percent : {1.1, 1.2}) {
    SCOPED_TRACE(percent);
    BeginWatch();
    RunFor(1, 6, /*with_steps=*/false);
    RunFor(10, percent);
    EXPECT_EQ(Halvings(), 0u);
    RunFor(55, percent);
    EXPECT_GE(Halvings(), StepShare::kHalvingsAtOnce);
    segment_.view().control().recorded_halvings.store(0);
  }
}

// What the first five took is no evidence: the job is within its budget since.
TEST_F(CostlyTraining, ADebtOfTheFirstSecondsOfAWatchIsForgiven) {
  BeginWatch(v1::GPU_MODE_WINDOW);
  RunFor(5, 20, /*with_steps=*/false);
  RunFor(30, 0.81);  // its part is 0.8
  EXPECT_EQ(Halvings(), 0u);
}

// A burst in a job that is within its budget is none of it, also soon after those five.
TEST_F(CostlyTraining, AWatchPaysForALaterBurstWithWhatItHasSavedUp) {
  for (const uint64_t after : {12, 16, 25}) {
    SCOPED_TRACE(after);
    BeginWatch();
    RunFor(1, 5, /*with_steps=*/false);
    RunFor(after - 1, 0.7);
    RunFor(4, 2.5);
    RunFor(30, 0.7);
    EXPECT_EQ(Halvings(), 0u);
  }
}

// Of three seconds, of which two are a wait: calm enough for detail, were it all.
TEST_F(CostlyTraining, TheWaitOfALongStepInAWatchIsNoCalm) {
  length_ns_ = 3 * kSecond;
  for (int first = 0; first < 30; first += 3) {
    SCOPED_TRACE(first);
    BeginWatch();
    RunFor(1, 5);
    for (int i = 0; i < 400; ++i) Look((first + i) % 30 < 10 ? 6 : 0.05);
    EXPECT_GE(Halvings(), StepShare::kHalvingsAtOnce);
  }
}

// Of many seconds: launched in some, then waited for.
TEST_F(CostlyTraining, LongStepsAreJudgedWhole) {
  for (int first = 0; first < 30; first += 3) {
    SCOPED_TRACE(first);
    BeginWatch();
    length_ns_ = 30 * kSecond;
    RunFor(1, 5);
    for (int i = 0; i < 300; ++i) RunFor(1, (first + i) % 30 < 12 ? 2 : 0.25);
    EXPECT_EQ(Halvings(), 0u);  // 0.95 in the mean
    for (int i = 0; i < 300; ++i) RunFor(1, (first + i) % 30 < 12 ? 4 : 0.05);
    EXPECT_GE(Halvings(), StepShare::kHalvingsAtOnce);
  }
}

// It is to hold the budget by that, and may be over before a share was looked for.
TEST_F(CostlyTraining, AWatchThatAsksForItBeginsWithAShare) {
  v1::JobSettings settings;
  settings.set_sample_steps(true);
  Begin(settings);
  EXPECT_EQ(Halvings(), 0u);
  Begin(settings, v1::GPU_MODE_HOST, /*attached=*/true);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
  RunFor(1, 1);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
  // Another worker, of a target that has had control steps, goes on as it was.
  segment_.view().control().control_ended.store(5);
  segment_.view().control().recorded_halvings.store(0);
  Begin(settings, v1::GPU_MODE_HOST, /*attached=*/true);
  EXPECT_EQ(Halvings(), 0u);
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
}

// A look at such a job is dear or cheap, and cheap ones alone are no calm second.
TEST_F(CostlyTraining, GetsNoDetailBackForTheCheapPartOfWhatIsTraced) {
  for (const int looks : {4, 30}) {  // a step; also one of three seconds
    SCOPED_TRACE(looks);
    Begin({}, v1::GPU_MODE_CONTINUOUS);
    look_ns_ = 100 * kMs;
    RunFor(20, 4, /*with_steps=*/false);
    ASSERT_EQ(segment_.view().control().thinning.load(), uint32_t{abi::kThinLaunches});
    segment_.view().header().cupti_state.store(
        static_cast<uint32_t>(abi::CuptiState::kTracing));
    length_ns_ = looks * 100 * kMs;
    RunFor(looks / 5, 1);
    for (int i = 0; i < 3000; ++i) {
      Look(i % looks < looks / 2 ? 1.7 : 0.1);
      ASSERT_EQ(segment_.view().control().thinning.load(),
                uint32_t{abi::kThinLaunches});
    }
    segment_.view().header().cupti_state.store(
        static_cast<uint32_t>(abi::CuptiState::kReady));
    length_ns_ = kStepNs;
  }
}

TEST_F(CostlyTraining, IsJudgedInTheMeanOnceAWatchIsOld) {
  BeginWatch();
  RunFor(60, 0.9);
  RunFor(11, 3);
  EXPECT_EQ(Halvings(), 0u);
  RunFor(60, 3);
  EXPECT_GE(Halvings(), StepShare::kHalvingsAtOnce);
}

TEST_F(CostlyTraining, RecordsAllStepsAsLongAsDetailHoldsItsBudget) {
  Begin({});
  RunFor(600, 0.95);
  EXPECT_EQ(Halvings(), 0u);
  EXPECT_LT(target_->highest_thinning(), uint32_t{abi::kThinSteps});
}

// Launched ahead, then waited for.
TEST_F(CostlyTraining, IsOverItsBudgetInTheMeanWhereItsCostComesInBursts) {
  Begin({});
  for (int i = 0; i < 60 && Halvings() == 0; ++i) {
    RunFor(1, 5);
    RunFor(1, 0.2);
  }
  EXPECT_GT(Halvings(), 0u);
}

// It is recorded whole, and cannot be made cheaper by fewer steps.
TEST_F(CostlyTraining, PaysForNoEvaluationWithItsSteps) {
  Begin({});
  for (int i = 0; i < 20; ++i) {
    RunFor(100, 0.5);
    const uint64_t begin = now_;
    RunFor(90, 2.5, /*with_steps=*/false);
    target_->StepSeen({++steps_, begin, now_, 0});
    target_->Govern(now_, hooks_ns_);
    ASSERT_EQ(Halvings(), 0u);
  }
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
}

// Its windows of a second begin and end anywhere.
TEST_F(CostlyTraining, AnEvaluationIsNoPartOfTheMean) {
  for (int phase = 0; phase < 4; ++phase) {
    SCOPED_TRACE(phase);
    Begin({});
    RunFor(8, 4);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
    RunFor(600, 0.7);
    for (int i = 0; i < phase; ++i) Look(0.7);
    RunFor(60, 5, /*with_steps=*/false);
    RunFor(30, 0.7);
    EXPECT_EQ(Halvings(), 0u);
  }
}

TEST_F(CostlyTraining, ADearStartIsNoPartOfTheMean) {
  for (const int looks : {11, 12, 13, 14, 40, 41, 42, 43}) {
    for (const double percent : {0.6, 0.9}) {
      SCOPED_TRACE(testing::Message() << looks << " " << percent);
      Begin({});
      for (int i = 0; i < looks; ++i) Look(20, /*with_steps=*/false);
      RunFor(60, percent);
      EXPECT_GT(target_->highest_thinning(), 0u);
      EXPECT_EQ(Halvings(), 0u);
    }
  }
}

// Soon after another one, which has used up what was saved.
TEST_F(CostlyTraining, AShortEvaluationIsNoPartOfTheMean) {
  for (int phase = 0; phase < 4; ++phase) {
    for (const int looks : {5, 6, 7, 8, 12}) {
      SCOPED_TRACE(testing::Message() << phase << " " << looks);
      Begin({});
      RunFor(8, 4);
      RunFor(600, 0.7);
      for (int i = 0; i < phase; ++i) Look(0.7);
      RunFor(60, 5, /*with_steps=*/false);
      RunFor(30, 0.7);
      for (int i = 0; i < looks; ++i) Look(5, /*with_steps=*/false);
      RunFor(30, 0.7);
      EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
      EXPECT_EQ(Halvings(), 0u);
    }
  }
}

// Whatever the windows of a second that they are looked at in.
TEST_F(CostlyTraining, BurstsAreSampledWhereTheirMeanIsOver) {
  struct Cycle {
    int burst, wait;  // in looks
    double percent;
  };
  for (const Cycle& cycle :
       {Cycle{3, 5, 5}, Cycle{4, 6, 6}, Cycle{4, 8, 10}, Cycle{6, 6, 5},
        Cycle{4, 12, 20}, Cycle{4, 20, 20}, Cycle{8, 24, 20}, Cycle{8, 36, 20},
        Cycle{12, 36, 20}, Cycle{16, 48, 20}, Cycle{20, 44, 20}, Cycle{36, 36, 5}}) {
    for (int phase = 0; phase < 4; ++phase) {
      SCOPED_TRACE(testing::Message()
                   << cycle.burst << " " << cycle.wait << " " << phase);
      segment_.view().control().recorded_halvings.store(0);
      Begin({});
      for (int i = 0; i < phase; ++i) Look(0.02);
      for (int i = 0; i < 60 && Halvings() == 0; ++i) {
        for (int k = 0; k < cycle.burst; ++k) Look(cycle.percent);
        for (int k = 0; k < cycle.wait; ++k) Look(0.02, /*with_steps=*/false);
      }
      EXPECT_GT(Halvings(), 0u);
    }
  }
}

TEST_F(CostlyTraining, TheMeanOfLongAgoIsForgotten) {
  for (int calm = 5; calm <= 8; ++calm) {
    SCOPED_TRACE(calm);
    Begin({});
    RunFor(18, 2);
    RunFor(calm, 0.3);
    RunFor(600, 0.9);
    RunFor(90, 5, /*with_steps=*/false);
    RunFor(5, 0.9);
    EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
    EXPECT_EQ(Halvings(), 0u);
  }
}

// Its cost is paid back before it is asked whether the budget is spent.
TEST_F(CostlyTraining, AnEvaluationAfterDearStepsIsNoReason) {
  Begin({});
  RunFor(8, 4);
  RunFor(600, 0.7);
  RunFor(4, 1.8);
  RunFor(60, 5, /*with_steps=*/false);
  RunFor(60, 0.7);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

TEST_F(CostlyTraining, AnEvaluationLeavesNoDebt) {
  Begin({});
  RunFor(8, 4);
  RunFor(60, 0.7);
  RunFor(60, 5, /*with_steps=*/false);
  EXPECT_EQ(segment_.view().control().thinning.load(), uint32_t{abi::kThinLaunches});
  RunFor(12, 0.1);
  EXPECT_EQ(segment_.view().control().thinning.load(), uint32_t{abi::kThinNothing});
}

// In the mean 0.87: what flows in while it waits is its own.
TEST_F(CostlyTraining, TheWaitsBetweenBurstsAreItsOwn) {
  Begin({});
  RunFor(8, 4);
  for (int i = 0; i < 100; ++i) {
    RunFor(5, 1.9);
    RunFor(6, 0.02, /*with_steps=*/false);
  }
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

// In the wait it gets detail back.
TEST_F(CostlyTraining, AWaitHidesNoDearSteps) {
  Begin({});
  for (int i = 0; i < 10; ++i) {
    RunFor(9, 5);
    RunFor(6, 0.02, /*with_steps=*/false);
  }
  EXPECT_GT(Halvings(), 0u);
}

TEST_F(CostlyTraining, CalmStepsHideNoDearOnes) {
  length_ns_ = 500 * kMs;
  Begin({});
  for (int i = 0; i < 10; ++i) {
    RunFor(4, 6);
    RunFor(6, 0.1);
  }
  EXPECT_GT(Halvings(), 0u);
}

TEST_F(CostlyTraining, WhatPrecedesTheFirstStepOfAWatchIsNoSpanOfSteps) {
  BeginWatch();
  RunFor(3, 3, /*with_steps=*/false);
  for (int i = 0; i < 7; ++i) Look(1.5);
  RunFor(30, 0.7);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
}

TEST_F(CostlyTraining, ADebtOfMoreDetailIsForgivenLateInAWatchToo) {
  BeginWatch();
  RunFor(6, 0.1);
  RunFor(2, 20);
  RunFor(30, 0.9);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  RunFor(6, 1.2);
  EXPECT_EQ(Halvings(), 0u);
}

// What was long ago, with less detail, says nothing of its steps of today.
TEST_F(CostlyTraining, IsJudgedAfreshEachTimeThatItHasTheLeastDetail) {
  Begin({});
  RunFor(18, 2);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
  RunFor(60, 0.3);
  RunFor(600, 0.9);
  const uint64_t begin = now_;
  RunFor(90, 5, /*with_steps=*/false);
  target_->StepSeen({++steps_, begin, now_, 0});
  target_->Govern(now_, hooks_ns_);
  EXPECT_EQ(Halvings(), 0u);
  RunFor(5, 0.9);
  EXPECT_EQ(Halvings(), 0u);
}

// Else hooks would leave nothing to windows.
TEST_F(CostlyTraining, IsToLeaveAPartOfTheBudgetToWindows) {
  Begin({}, v1::GPU_MODE_WINDOW);
  for (int i = 0; i < 60 && Halvings() == 0; ++i) {
    segment_.view().header().gpu_self_ns.fetch_add(10 * kMs);
    RunFor(9, 0.95);
  }
  EXPECT_GE(Halvings(), StepShare::kHalvingsAtOnce);
}

// A window, or several that are charged at once, may cost more than the budget for
// long. Tracing waits for that.
TEST_F(CostlyTraining, PaysForNoWindowWithItsSteps) {
  Begin({}, v1::GPU_MODE_WINDOW);
  // A balance of their own would last for 480 s.
  for (int i = 0; i < 3; ++i) {
    segment_.view().header().gpu_self_ns.fetch_add(700 * kMs);
    RunFor(100, 0.85);
  }
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u);
  RunFor(300, 0.85);
  EXPECT_GT(Halvings(), 0u) << "as hooks alone are over their part for too long";
}

TEST_F(CostlyTraining, HasThePartsOfThePlanThatItIsArmedWith) {
  Begin({}, v1::GPU_MODE_WINDOW);
  GpuPlan plan;
  plan.mode = v1::GPU_MODE_HOST;
  target_->Arm(plan, now_);
  for (const bool host : {true, false}) {
    for (int i = 0; i < 90 && Halvings() == 0; ++i) {
      segment_.view().header().gpu_self_ns.fetch_add(20 * kMs);
      RunFor(10, 0.9);
    }
    EXPECT_EQ(Halvings() == 0, host) << "all of the budget is for hooks";
    plan.mode = v1::GPU_MODE_WINDOW;
    target_->Arm(plan, now_);
  }
}

TEST_F(CostlyTraining, RecordsAllStepsWhereItIsTold) {
  lull::v1::JobSettings settings;
  settings.set_all_steps(true);
  Begin(settings);
  RunFor(600, 2.2);
  EXPECT_EQ(Halvings(), 0u);
  EXPECT_EQ(ControlSteps(), 0u);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
}

TEST_F(CostlyTraining, RecordsAllThatGoesOnWhereItShowsNoSteps) {
  Begin({});
  RunFor(600, 2.2, /*with_steps=*/false);
  EXPECT_EQ(Halvings(), 0u);
  RunFor(5, 2.2);
  EXPECT_EQ(Halvings(), 0u) << "what went on before says nothing of its steps";
  RunUntilSampled(2.2);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
}

TEST_F(CostlyTraining, RecordsAllOfWhatFollowsItsLastStep) {
  Begin({});
  RunFor(20, 2.2);
  RunFor(600, 2.2, /*with_steps=*/false);
  EXPECT_EQ(Halvings(), 0u);
}

// Steps of PyTorch before 2.0 are seen as they end, and none rests.
TEST_F(CostlyTraining, IsNotSaidToBeSampledWhereNoStepRests) {
  can_rest_ = false;
  Begin({});
  RunUntilSampled(2.2);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  Begin({});
  RunFor(1, 2.2);
  EXPECT_LT(target_->highest_thinning(), uint32_t{abi::kThinSteps});
}

TEST_F(CostlyTraining, IsRecordedWholeAgainWhenItIsArmedAgain) {
  Begin({});
  RunUntilSampled(2.2);
  target_->Disarm(now_);
  GpuPlan plan;
  plan.mode = v1::GPU_MODE_HOST;
  target_->Arm(plan, now_);
  EXPECT_EQ(Halvings(), 0u);
  EXPECT_EQ(ControlSteps(), 0u);
}

// An earlier reader ended while the GPU was not to be traced.
TEST_F(CostlyTraining, IsNotHeldForGoodByAReaderThatIsNoMore) {
  segment_.view().control().gpu_hold.store(1);
  Begin({}, v1::GPU_MODE_WINDOW);
  RunFor(1, 0.1);
  EXPECT_EQ(segment_.view().control().gpu_hold.load(), 0u);
}

TEST_F(CostlyTraining, GoesOnAsItWasWithANewReader) {
  Begin({});
  RunUntilSampled(2.2);
  Begin({});
  RunFor(1, 0.1);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinSteps});
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
  RunFor(1, 0.1);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsAtOnce);
}

}  // namespace
}  // namespace lull::relay
