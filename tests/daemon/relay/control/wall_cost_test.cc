// Trainings whose windows cost what is known, against what the governor is charged.
#include "daemon/relay/control/wall_cost.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>
#include <vector>

#include "daemon/relay/control/governor.h"
#include "tests/daemon/units.h"
#include "tests/trials.h"

namespace lull::relay {
namespace {

constexpr uint64_t kStepNs = 12'000'000;

// Goes by the default schedule: of 26 steps 20 are not traced.
class Training {
 public:
  struct Habits {
    double longer = 0;    // a traced step
    double noise = 0;     // each step, up or down by as much at most
    double recorded = 0;  // longer, a step that is recorded
    uint64_t one_in = 1;  // of so many untraced steps one is recorded
  };
  // After so many steps of another one.
  Training(WallCost* cost, Habits habits, uint64_t steps_before = 0)
      : cost_(cost),
        habits_(habits),
        now_(kStart + steps_before * kStepNs),
        number_(steps_before) {}

  void Run(int steps) {
    for (int i = 0; i < steps; ++i) Step();
  }
  // As the governor says, which looks after each step.
  void RunUnder(Governor* governor, int steps) {
    for (int i = 0; i < steps; ++i) {
      Step();
      held_ = governor->Update(now_, 0, cost_->tracing().total_ns()).gpu_hold;
    }
  }

  double added_ns() const { return added_ns_; }
  double recording_ns() const { return recording_ns_; }
  double share() const {
    return added_ns_ / (static_cast<double>(now_ - kStart) - added_ns_);
  }
  uint64_t now() const { return now_; }

 private:
  static constexpr uint64_t kStart = 77 * kSecond;

  void Step() {
    const uint64_t place = number_ % 26;
    const bool on = place >= 20 && !held_;
    if (on != was_on_) {
      cost_->AddTracing(now_,
                        on ? abi::TracingState::kActive : abi::TracingState::kOff);
    }
    was_on_ = on;
    std::uniform_real_distribution<double> noise(1 - habits_.noise, 1 + habits_.noise);
    const double plain = kStepNs * noise(random_);
    const double added = on ? plain * habits_.longer : 0;
    added_ns_ += added;
    const bool rests = !on && place != 0 && number_ % habits_.one_in != 0;
    const double recording = rests ? 0 : plain * habits_.recorded;
    if (!on) recording_ns_ += recording;
    const uint64_t end = now_ + static_cast<uint64_t>(plain + added + recording);
    cost_->AddStep({++number_, now_, end, rests ? end - now_ : 0});
    now_ = end;
  }

  WallCost* cost_;
  const Habits habits_;
  std::mt19937_64 random_{1};
  uint64_t now_;
  uint64_t number_;
  bool was_on_ = false;
  bool held_ = false;
  double added_ns_ = 0;
  double recording_ns_ = 0;
};

TEST(WallCost, IsWhatWindowsAdd) {
  WallCost cost;
  Training training(&cost, {.longer = 0.36, .noise = 0.1});
  training.Run(26 * 5);
  EXPECT_EQ(cost.tracing().total_ns(), 0u) << "five windows show nothing";
  training.Run(26 * 95);
  EXPECT_NEAR(static_cast<double>(cost.tracing().total_ns()), training.added_ns(),
              0.1 * training.added_ns());
}

// What windows cost later is not the price of those that cost nothing.
TEST(WallCost, WindowsAreNotChargedWhatOnlyLaterOnesCost) {
  WallCost cost;
  Training(&cost, {.longer = 0}).Run(26 * 2000);
  EXPECT_EQ(cost.tracing().total_ns(), 0u);
  Training dear(&cost, {.longer = 0.36}, 2000 * 26);
  for (int i = 0; i < 26 * 400; ++i) {
    dear.Run(1);
    ASSERT_LE(static_cast<double>(cost.tracing().total_ns()), dear.added_ns());
  }
  EXPECT_GT(static_cast<double>(cost.tracing().total_ns()), 0.5 * dear.added_ns());
}

// Threads have rings of their own, and a pass reads one after the other: what one
// thread tells of tracing comes after the steps of another, and not in order.
TEST(WallCost, TracingMayBeToldAfterTheSteps) {
  constexpr uint64_t kQuickNs = 1'000'000;
  constexpr int kWindows = 100;
  double added_ns = 0;
  WallCost cost;
  uint64_t now = 77 * kSecond, number = 0;
  for (int pass = 0; pass < kWindows / 4; ++pass) {
    std::vector<uint64_t> on, off;
    for (int i = 0; i < 26 * 4; ++i) {
      if (i % 26 == 20) on.push_back(now);
      if (i % 26 == 0) off.push_back(now);
      const uint64_t extra = i % 26 >= 20 ? kQuickNs / 2 : 0;
      added_ns += static_cast<double>(extra);
      cost.AddStep({++number, now, now + kQuickNs + extra});
      now += kQuickNs + extra;
    }
    for (uint64_t at : on) cost.AddTracing(at, abi::TracingState::kActive);
    for (uint64_t at : off) cost.AddTracing(at, abi::TracingState::kOff);
  }
  EXPECT_NEAR(static_cast<double>(cost.tracing().total_ns()), added_ns, 0.1 * added_ns);
}

// Our own clock alone knows what windows cost where no steps are marked, before and
// after: what steps have shown until then does not pay for it.
TEST(WallCost, OfStepsAndOurOwnClockNeitherPaysForTheOther) {
  WallCost cost;
  EXPECT_EQ(cost.tracing().WithOwn(5 * kSecond), 5 * kSecond)
      << "before the first step";
  Training training(&cost, {.longer = 0.36, .noise = 0.1});
  uint64_t own_ns = 5 * kSecond;
  uint64_t last = own_ns;
  for (int i = 0; i < 26 * 400; ++i) {
    training.Run(1);
    own_ns += kStepNs / 100;  // a part of what steps show
    const uint64_t with = cost.tracing().WithOwn(own_ns);
    ASSERT_GE(with, last);
    last = with;
  }
  EXPECT_NEAR(static_cast<double>(last - 5 * kSecond), training.added_ns(),
              0.15 * training.added_ns());
  EXPECT_EQ(cost.tracing().WithOwn(own_ns + 3 * kSecond), last + 3 * kSecond);
}

TEST(WallCost, StepsThatDifferAnywayCostNothing) {
  WallCost cost;
  Training training(&cost, {.longer = 0, .noise = 0.5});
  training.Run(26 * 200);
  // Of 26 steps; by chance once in a while.
  EXPECT_LT(static_cast<double>(cost.tracing().total_ns()), 0.002 * 26 * 200 * kStepNs);
}

TEST(WallCost, WhatRecordingCostsIsToldByStepsThatRest) {
  for (uint64_t one_in : {2, 7, 16}) {
    WallCost cost;
    Training training(
        &cost, {.longer = 0.1, .noise = 0.05, .recorded = 0.1, .one_in = one_in});
    training.Run(26 * 400);
    const double truth = training.recording_ns();
    EXPECT_LT(static_cast<double>(cost.recording().total_ns()), 1.05 * truth);
    EXPECT_GT(static_cast<double>(cost.recording().total_ns()), 0.7 * truth)
        << "one step in " << one_in;
    EXPECT_GT(cost.tracing().total_ns(), 0u);
  }
  WallCost nothing;
  Training same(&nothing, {.noise = 0.2, .one_in = 4});
  same.Run(26 * 400);
  EXPECT_LT(static_cast<double>(nothing.recording().total_ns()),
            0.001 * 26 * 100 * kStepNs);
  WallCost always;
  Training recorded(&always, {.noise = 0.05, .recorded = 0.1});
  recorded.Run(26 * 400);
  EXPECT_EQ(always.recording().total_ns(), 0u) << "nothing to compare it with";
}

// What steps show of a time counts beside our own clocks of that time.
TEST(WallCost, ATimeOfWhichStepsShowNothingDoesNotHideWhatTheyShowOfAnother) {
  Shown shown;
  uint64_t own_ns = 0, truth_ns = 0;
  for (int i = 0; i < 100; ++i) {
    own_ns += 2 * kMs;
    truth_ns += 2 * kMs;
    if (i % 2 == 0) {
      shown.Add(0);
    } else {
      shown.Add(4e6);
      truth_ns += 2 * kMs;
    }
    EXPECT_EQ(shown.WithOwn(own_ns), truth_ns);
  }
}

TEST(WallCost, NothingIsKnownWithoutStepsOrWindows) {
  WallCost cost;
  for (uint64_t i = 0; i < 100'000; ++i) {
    cost.AddTracing(i * kStepNs,
                    i % 2 == 0 ? abi::TracingState::kActive : abi::TracingState::kOff);
  }
  EXPECT_EQ(cost.tracing().total_ns(), 0u);
  WallCost untraced;
  for (uint64_t i = 0; i < 100'000; ++i) {
    untraced.AddStep({i, i * kStepNs, (i + 1) * kStepNs});
  }
  EXPECT_EQ(untraced.tracing().total_ns(), 0u);
}

TEST(WallCost, WordsThatMakeNoSenseAreLeftOut) {
  WallCost cost;
  std::mt19937_64 random{7};
  for (int i = 0; i < 200'000; ++i) {
    const uint64_t start = random() >> (random() % 64);
    const uint64_t before = cost.tracing().total_ns();
    if (i % 3 == 0) {
      cost.AddTracing(start, abi::TracingState{static_cast<uint32_t>(random() % 9)});
    } else {
      cost.AddStep({random(), start, start + random() % kStepNs - kStepNs / 2});
    }
    ASSERT_GE(cost.tracing().total_ns(), before);
    ASSERT_LT(cost.tracing().total_ns(), uint64_t{1} << 62);
  }
}

// What the governor is for: tracing that makes a step a third longer would cost 8 %.
TEST(WallCost, TheGovernorHoldsTheBudgetOnTheWallClock) {
  for (double percent : {0.5, 1.0, 5.0}) {
    if (kSanitized && percent != 1) continue;
    for (double longer : {0.05, 0.36, 1.0}) {
      WallCost cost;
      Training training(&cost, {.longer = longer, .noise = 0.1});
      Governor governor(percent);
      training.RunUnder(&governor, 50'000);  // more than ten minutes
      // Beside the budget what a job begins with, and what is not charged yet.
      const double seconds = static_cast<double>(training.now()) / kSecond;
      EXPECT_LT(100 * training.share(), percent * (1 + 30 / seconds) * 1.15 + 0.05)
          << longer;
      if (100 * longer * 6 / 26 > 2 * percent) {
        EXPECT_GT(100 * training.share(), 0.5 * percent)
            << "it goes on, as far as it may";
      }
    }
  }
}

}  // namespace
}  // namespace lull::relay
