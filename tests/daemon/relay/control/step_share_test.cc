// Trainings in which a recorded step costs what is known, under the share that is given
// to them.
#include "daemon/relay/control/step_share.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "daemon/relay/control/wall_cost.h"
#include "tests/daemon/units.h"
#include "tests/trials.h"

namespace lull::relay {
namespace {

class SampledTraining {
 public:
  // A step takes `step_ns`, and `cost` of it more when it is recorded.
  SampledTraining(StepShare* share, uint64_t step_ns, double cost)
      : share_(share), step_ns_(step_ns), cost_(cost) {}

  void RunFor(uint64_t ns) {
    for (const uint64_t until = now_ + ns; now_ < until;) Step();
  }
  void set_cost(double cost) { cost_ = cost; }
  // No step, but what costs so much.
  void Evaluate(uint64_t ns, double cost) {
    for (const uint64_t until = now_ + ns; now_ < until; now_ += 250 * kMs) {
      cost_ns_ += static_cast<uint64_t>(cost * (250 * kMs));
      share_->Update(now_, cost_ns_);
    }
  }
  // Since the last call.
  double Paid() {
    const double paid =
        static_cast<double>(cost_ns_ - paid_ns_) / static_cast<double>(now_ - looked_);
    paid_ns_ = cost_ns_;
    looked_ = now_;
    return paid;
  }
  uint64_t now() const { return now_; }

 private:
  void Step() {
    ++number_;
    const uint32_t halvings = share_->halvings();
    const bool rests = halvings == 0 ? number_ % StepShare::kControlOneIn == 0
                                     : (number_ & ((uint64_t{1} << halvings) - 1)) != 0;
    const auto cost =
        static_cast<uint64_t>(rests ? 0 : cost_ * static_cast<double>(step_ns_));
    const uint64_t end = now_ + step_ns_ + cost;
    // It is looked at four times a second; hooks tell as the step goes on.
    for (uint64_t look = now_ + 250 * kMs; look < end; look += 250 * kMs) {
      share_->Update(look, cost_ns_ + cost * (look - now_) / (end - now_));
    }
    cost_ns_ += cost;
    share_->AddStep({number_, now_, end, rests ? end - now_ : 0});
    now_ = end;
    if (now_ >= next_look_) {
      share_->Update(now_, cost_ns_);
      next_look_ = now_ + 250 * kMs;
    }
  }

  StepShare* share_;
  const uint64_t step_ns_;
  double cost_;
  uint64_t now_ = 50 * kSecond;
  uint64_t number_ = 0;
  uint64_t cost_ns_ = 7 * kSecond;
  uint64_t next_look_ = 0;
  uint64_t paid_ns_ = 7 * kSecond;
  uint64_t looked_ = 50 * kSecond;
};

TEST(StepShare, HoldsTheBudgetAndDoesNotSwing) {
  for (uint64_t step_ns : {2 * kMs, 12 * kMs, 400 * kMs, 2 * kSecond}) {
    for (double cost : {0.011, 0.036, 0.1, 0.3}) {
      StepShare share(1);
      SampledTraining training(&share, step_ns, cost);
      training.RunFor(120 * kSecond);
      training.Paid();
      const uint32_t halvings = share.halvings();
      EXPECT_GT(halvings, 0u);
      training.RunFor(600 * kSecond);
      EXPECT_EQ(share.halvings(), halvings) << step_ns << " " << cost;
      const double paid = training.Paid();
      EXPECT_LE(paid, 0.0101) << step_ns << " " << cost;
      EXPECT_GT(paid, 0.0035) << step_ns << " " << cost;
    }
  }
}

TEST(StepShare, RecordsAllStepsWithinTheBudgetAndAgainOnceTheyAre) {
  StepShare share(1);
  SampledTraining training(&share, 12 * kMs, 0.009);
  training.RunFor(200 * kSecond);
  EXPECT_EQ(share.halvings(), 0u);
  EXPECT_TRUE(share.InCharge(training.now()));
  training.set_cost(0.2);
  training.RunFor(60 * kSecond);
  EXPECT_EQ(share.halvings(), 5u);
  training.set_cost(0.001);
  training.RunFor(400 * kSecond);
  EXPECT_EQ(share.halvings(), 0u);
}

TEST(StepShare, IsInTheFirstSecondsAlreadyNearTheBudget) {
  StepShare share(0.5);
  SampledTraining training(&share, 12 * kMs, 0.08);
  training.RunFor(3 * kSecond);
  EXPECT_EQ(share.halvings(), 4u);
}

TEST(StepShare, HoldsTheBudgetOfStepsThatTakeLong) {
  for (uint64_t step_ns : {12 * kSecond, 20 * kSecond, 50 * kSecond}) {
    StepShare share(1);
    SampledTraining training(&share, step_ns, 0.05);
    training.RunFor(3600 * kSecond);
    training.Paid();
    training.RunFor(10 * 3600 * kSecond);
    EXPECT_TRUE(share.InCharge(training.now()));
    EXPECT_LE(training.Paid(), 0.0101) << step_ns;
  }
}

TEST(StepShare, HoldsTheBudgetOfStepsLongerThanAMinute) {
  for (uint64_t step_ns : {90 * kSecond, 200 * kSecond}) {
    StepShare share(1, StepShare::kHalvingsAtOnce);
    SampledTraining training(&share, step_ns, 0.1);
    training.RunFor(8 * 3600 * kSecond);
    training.Paid();
    training.RunFor(80 * 3600 * kSecond);
    EXPECT_TRUE(share.InCharge(training.now()));
    EXPECT_LE(training.Paid(), 0.0101) << step_ns;
  }
}

// A watch may be over soon, and began with one in four.
TEST(StepShare, OfACheapJobAllStepsAreRecordedSoon) {
  for (const uint64_t step_ns : {12 * kMs, 300 * kMs}) {
    StepShare share(1, StepShare::kHalvingsAtOnce);
    SampledTraining training(&share, step_ns, 0.003);
    training.RunFor(std::max(60 * step_ns, 4 * kSecond));
    EXPECT_EQ(share.halvings(), 0u) << step_ns;
    training.RunFor(600 * kSecond);
    EXPECT_EQ(share.halvings(), 0u) << step_ns;
  }
}

// What was over may be over again: it comes back one halving at a time.
TEST(StepShare, WhatWasOverDoesNotRecordAllStepsAtOnce) {
  StepShare share(1, StepShare::kHalvingsAtOnce);
  SampledTraining training(&share, 12 * kMs, 0.1);
  training.RunFor(60 * kSecond);
  const uint32_t dear = share.halvings();
  ASSERT_GT(dear, StepShare::kHalvingsAtOnce);
  training.set_cost(0.003);
  while (share.halvings() == dear) training.RunFor(kSecond);
  EXPECT_EQ(share.halvings(), dear - 1);
}

// So few of them are recorded between two that no stretch lies there.
TEST(StepShare, IsJudgedAcrossEvaluations) {
  StepShare share(1, StepShare::kHalvingsAtOnce);
  SampledTraining training(&share, kSecond, 0.6);
  for (int i = 0; i < 60; ++i) {
    training.RunFor(16 * kSecond);
    training.Evaluate(300 * kSecond, 0);
  }
  EXPECT_GT(share.halvings(), StepShare::kHalvingsAtOnce);
}

TEST(StepShare, PaysForNoEvaluationWithFewerSteps) {
  StepShare share(1, StepShare::kHalvingsAtOnce);
  SampledTraining training(&share, kSecond, 0.02);
  for (int i = 0; i < 60; ++i) {
    training.RunFor(60 * kSecond);
    training.Evaluate(90 * kSecond, 0.05);
    ASSERT_LE(share.halvings(), StepShare::kHalvingsAtOnce + 1) << i;
  }
}

// What costs nothing on the wall is told with errors, as steps differ.
TEST(StepShare, AJobThatCostsNothingKeepsItsSteps) {
  for (uint64_t seed = 1; seed <= Trials(3u, 1u); ++seed) {
    WallCost cost;
    StepShare share(1);
    std::mt19937_64 random{seed};
    std::lognormal_distribution<double> lengths(0, 0.3);
    uint64_t now = 50 * kSecond, whole = 0;
    for (uint64_t number = 1; number <= 72'000; ++number) {  // half an hour
      const auto end = now + static_cast<uint64_t>(25e6 * lengths(random));
      const uint32_t halvings = share.halvings();
      const bool rests = halvings == 0 ? random() % StepShare::kControlOneIn == 0
                                       : random() % (uint64_t{1} << halvings) != 0;
      const steps::TimedStep step{number, now, end, rests ? end - now : 0};
      cost.AddStep(step);
      share.AddStep(step);
      share.Update(end, cost.recording().WithOwn(0));
      whole += share.halvings() == 0 ? 1 : 0;
      now = end;
    }
    EXPECT_GT(whole, 60'000u) << "seed " << seed;
  }
}

// In a window of tracing no step rests.
TEST(StepShare, LongWindowsDoNotSwitchItOff) {
  StepShare share(1);
  uint64_t now = 50 * kSecond, cost_ns = 0;
  for (uint64_t number = 1; number <= 60'000; ++number) {
    const bool traced = number % 400 >= 300;
    const uint32_t halvings = share.halvings();
    const uint64_t one_in =
        halvings == 0 ? StepShare::kControlOneIn : uint64_t{1} << halvings;
    const bool drawn = number % one_in == 0;
    const bool rests = !traced && (halvings == 0) == drawn;
    const uint64_t end = now + 12 * kMs;
    share.AddStep({number, now, end, rests ? end - now : 0});
    if (!rests && !traced) cost_ns += 12 * kMs / 25;
    now = end;
    share.Update(now, cost_ns);
    if (number > 1'000) {
      ASSERT_TRUE(share.InCharge(now)) << number;
      ASSERT_GE(share.halvings(), 1u) << number;
      ASSERT_LE(share.halvings(), 3u) << number;
    }
  }
}

TEST(StepShare, ASuccessorGoesOnWithIt) {
  StepShare share(1, 4);
  EXPECT_EQ(share.halvings(), 4u);
  SampledTraining training(&share, 12 * kMs, 0.1);
  training.RunFor(120 * kSecond);
  EXPECT_EQ(share.halvings(), 4u);
  EXPECT_LE(training.Paid(), 0.01);
  EXPECT_EQ(StepShare(1, 4'000'000'000).halvings(), 6u) << "no word of ours";
}

TEST(StepShare, IsNotInChargeWhereNoStepRests) {
  StepShare share(1);
  uint64_t now = 50 * kSecond;
  for (uint64_t number = 1; number < 10'000; ++number, now += 12 * kMs) {
    share.AddStep({number, now, now + 12 * kMs, 0});
    share.Update(now + 12 * kMs, number * 10 * kMs);
    ASSERT_FALSE(share.InCharge(now + 12 * kMs));
  }
  EXPECT_EQ(share.halvings(), 0u);
  share.AddStep({10'000, now, now + 12 * kMs, 12 * kMs});
  EXPECT_TRUE(share.InCharge(now + kSecond));
  EXPECT_FALSE(share.InCharge(now + 100 * kSecond));
}

TEST(StepShare, WithoutABudgetAllStepsAreRecordedAndACounterThatFallsIsNoCost) {
  StepShare unbounded(0);
  SampledTraining training(&unbounded, 12 * kMs, 1);
  training.RunFor(60 * kSecond);
  EXPECT_EQ(unbounded.halvings(), 0u);
  StepShare share(1);
  uint64_t now = 50 * kSecond;
  for (uint64_t number = 1; number < 10'000; ++number, now += 12 * kMs) {
    share.AddStep({number, now, now + 12 * kMs, number % 16 == 0 ? 12 * kMs : 0});
    share.Update(now + 12 * kMs, (10'000 - number) * kMs);
  }
  EXPECT_EQ(share.halvings(), 0u);
}

}  // namespace
}  // namespace lull::relay
