// Trainings whose cost is known, against what is told of them.
#include "daemon/steps/step_cost.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "tests/daemon/units.h"
#include "tests/trials.h"

namespace lull::steps {
namespace {

struct Training {
  uint64_t seed = 1;
  size_t steps = 1'000;
  size_t skip_first = 5;
  size_t wait = 20;
  size_t active = 5;     // and one step before them, in which it is switched on
  double longer = 0.09;  // a traced step, really
  double begin_ms = 3;   // switching on
  double end_ms = 2;     // switching off
  double stays = 0;      // how much longer all steps are after the first window
  double noise = 0.03;   // of each step alone, in logarithms
  double memory = 0.6;   // of noise that a step shares with the one before it
  double shared_noise = 0.05;
  double drift = 0;       // from the first step to the last
  double rare = 0;        // steps that are three times as long, for other reasons
  size_t one_in = 0;      // steps is a control step, where nothing is traced
  bool reversed = false;  // all others are, that one is recorded
  double recorded = 0;    // how much longer all others are, really
  double doubled = 0;     // steps are twice as long as the others, at random
  size_t all_first = 8;   // so many are no control steps
  double recorded_first = 0;  // how much longer these are, besides
};

struct Recording {
  std::vector<TimedStep> steps;
  std::vector<TracingChange> changes;
  double longer = 0;  // what was really so
  double paid = 0;
};

class Noise {
 public:
  explicit Noise(uint64_t seed) : engine_(seed) {}
  double Uniform() {
    return (static_cast<double>(engine_() >> 11) + 0.5) / (1ULL << 53);
  }
  double Normal() {
    return std::sqrt(-2 * std::log(Uniform())) *
           std::cos(2 * std::numbers::pi * Uniform());
  }

 private:
  std::mt19937_64 engine_;
};

Recording Recorded(const Training& training) {
  Noise random(training.seed);
  Recording story;
  story.longer = training.longer;
  constexpr double kStepMs = 12;
  const size_t cycle = training.wait + 1 + training.active;
  double shared = random.Normal();
  double without = 0;
  double added = 0;
  double at_ms = 1'000;
  for (size_t i = 0; i < training.steps; ++i) {
    shared = training.memory * shared +
             std::sqrt(1 - training.memory * training.memory) * random.Normal();
    double plain =
        kStepMs *
        std::exp(training.shared_noise * shared + training.noise * random.Normal()) *
        (1 +
         training.drift * static_cast<double>(i) / static_cast<double>(training.steps));
    if (random.Uniform() < training.rare) plain *= 3;
    if (training.doubled > 0 && random.Uniform() < training.doubled) plain *= 2;
    const size_t planned = i < training.skip_first ? 0 : i - training.skip_first;
    const size_t phase = planned % cycle;
    const bool on = phase >= training.wait;
    const bool begins = phase == training.wait;
    const bool ends = phase == 0 && planned > 0;
    if (planned >= cycle) plain *= 1 + training.stays;
    const bool rests =
        training.one_in > 0 && i > training.all_first &&
        (i % training.one_in == 7 % training.one_in) != training.reversed &&
        phase > 0 && phase < training.wait;
    if (!rests) plain *= 1 + training.recorded;
    if (i <= training.all_first) plain *= 1 + training.recorded_first;
    double extra = on ? training.longer * plain : 0;
    if (begins) extra += training.begin_ms;
    if (ends) extra += training.end_ms;
    const auto start = static_cast<uint64_t>(at_ms * 1e6);
    // Told a moment after the boundary, as the shim does.
    if (begins) story.changes.push_back({start + 400 * kUs, TracingIs::kOn});
    if (ends) story.changes.push_back({start + 20 * kUs, TracingIs::kOff});
    at_ms += plain + extra;
    const auto end = static_cast<uint64_t>(at_ms * 1e6);
    story.steps.push_back({i + 1, start, end, rests ? end - start : 0});
    without += plain;
    added += extra;
  }
  story.paid = added / without;
  return story;
}

bool Holds(const std::optional<Estimate>& estimate, double truth) {
  return estimate && estimate->low <= truth && truth <= estimate->high;
}

struct Coverage {
  int longer = 0;
  int paid = 0;
  int recorded = 0;
};

constexpr int kMostHold = Trials(90, 70);

Coverage CoverageOf(Training training) {
  Coverage coverage;
  constexpr int kEach = Trials(1, 10);  // in percent
  for (training.seed = 1; training.seed <= 100 / kEach; ++training.seed) {
    const Recording story = Recorded(training);
    const StepCost cost = CostOf(story.steps, story.changes);
    coverage.longer += Holds(cost.traced_longer, story.longer) ? kEach : 0;
    coverage.paid += Holds(cost.paid, story.paid) ? kEach : 0;
    coverage.recorded += Holds(cost.recorded_longer, training.recorded) ? kEach : 0;
  }
  return coverage;
}

// In ninety of a hundred of each.
void ExpectWindowsAreTold(const std::vector<Training>& trainings) {
  for (size_t i = 0; i < trainings.size(); ++i) {
    const Coverage coverage = CoverageOf(trainings[i]);
    EXPECT_GE(coverage.longer, kMostHold) << "of training " << i;
    EXPECT_GE(coverage.paid, kMostHold) << "of training " << i;
  }
}

TEST(StepCost, TellsWhatTracingReallyCost) {
  const Recording story = Recorded({.steps = 5'000});
  const StepCost cost = CostOf(story.steps, story.changes);
  ASSERT_TRUE(cost.traced_longer && cost.paid);
  EXPECT_EQ(cost.windows, 192u);
  EXPECT_NEAR(cost.traced_longer->share, 0.09, 0.01);
  EXPECT_NEAR(cost.paid->share, story.paid, 0.003);
  EXPECT_LT(cost.traced_longer->high - cost.traced_longer->low, 0.03);
}

TEST(StepCost, ItsIntervalsHoldTheTruthInNinetyOfAHundredTrainings) {
  const std::vector<Training> trainings = {
      {.steps = 200},
      {.steps = 5'000},
      {.steps = 1'000, .longer = 0},
      {.steps = 1'000, .longer = 0.5, .shared_noise = 0.15},
      {.steps = 1'000, .memory = 0.95, .shared_noise = 0.2},
      {.steps = 1'000, .drift = 1},
      {.steps = 1'000, .drift = -0.5},
      {.steps = 400, .noise = 0.3},
  };
  ExpectWindowsAreTold(trainings);
}

TEST(StepCost, ControlStepsTellWhatRecordingCosts) {
  const Recording story = Recorded({.steps = 5'000, .one_in = 17, .recorded = 0.03});
  const StepCost cost = CostOf(story.steps, story.changes);
  EXPECT_GT(cost.control_steps, 180u);
  ASSERT_TRUE(cost.recorded_longer);
  EXPECT_NEAR(cost.recorded_longer->share, 0.03, 0.01);
  EXPECT_LT(cost.recorded_longer->high - cost.recorded_longer->low, 0.05);
  // Windows are compared with recorded steps, as ever.
  EXPECT_NEAR(cost.traced_longer->share, 0.09, 0.01);
}

TEST(StepCost, WhatControlStepsTellHoldsInNinetyOfAHundredTrainings) {
  const Training trainings[] = {
      {.steps = 400, .one_in = 17, .recorded = 0.03},
      {.steps = 5'000, .one_in = 17, .recorded = 0},
      {.steps = 2'000,
       .memory = 0.95,
       .shared_noise = 0.2,
       .one_in = 17,
       .recorded = 0.1},
      {.steps = 2'000, .drift = 1, .one_in = 33, .recorded = 0.03},
      {.steps = 2'000, .rare = 0.03, .one_in = 17, .recorded = 0.03},
      {.steps = 1'000,
       .wait = 900,
       .active = 0,
       .noise = 0.3,
       .one_in = 9,
       .recorded = 0.05},
  };
  int number = 0;
  for (const Training& training : trainings) {
    EXPECT_GE(CoverageOf(training).recorded, kMostHold) << "of training " << number;
    ++number;
  }
}

TEST(StepCost, FewRecordedStepsAreComparedWithThoseThatRest) {
  const Recording story = Recorded({.steps = 5'000,
                                    .wait = 6'000,
                                    .one_in = 17,
                                    .reversed = true,
                                    .recorded = 0.03});
  const StepCost cost = CostOf(story.steps, story.changes);
  EXPECT_GT(cost.rested_steps, 4'600u);
  EXPECT_EQ(cost.control_steps, cost.rested_steps);
  EXPECT_EQ(cost.rested_steps + cost.untraced_steps, 5'000u);
  ASSERT_TRUE(cost.recorded_longer && cost.recording_paid);
  EXPECT_NEAR(cost.recorded_longer->share, 0.03, 0.01);
  EXPECT_NEAR(cost.recording_paid->share, 0.03 * 302 / 5'000, 0.0007);
  EXPECT_LT(cost.recording_paid->low, cost.recording_paid->share);
}

// The governor took detail away there, or had not begun to.
TEST(StepCost, StepsBeforeTheFirstThatRestsSayNothingOfThoseAfterIt) {
  const Recording story = Recorded({.steps = 4'000,
                                    .wait = 6'000,
                                    .one_in = 4,
                                    .reversed = true,
                                    .recorded = 0.07,
                                    .all_first = 3'000,
                                    .recorded_first = 0.2});
  const StepCost cost = CostOf(story.steps, story.changes, 3'001);
  EXPECT_EQ(cost.rested_steps + cost.recorded_steps, 999u);
  ASSERT_TRUE(cost.recorded_longer && cost.recording_paid);
  EXPECT_NEAR(cost.recorded_longer->share, 0.07, 0.02);
  EXPECT_NEAR(cost.recording_paid->share, 0.07 / 4, 0.005);
  // Of a long job the first steps and the latest are stored.
  Recording late = story;
  late.steps.erase(late.steps.begin() + 64, late.steps.begin() + 3'500);
  const StepCost of_late = CostOf(late.steps, late.changes, 3'001);
  EXPECT_LT(of_late.rested_steps + of_late.recorded_steps, 501u);
}

TEST(StepCost, WhatFewRecordedStepsTellHoldsInNinetyOfAHundredTrainings) {
  const Training trainings[] = {
      {.steps = 1'000, .one_in = 2, .reversed = true, .recorded = 0.04},
      {.steps = 2'000, .one_in = 4, .reversed = true, .recorded = 0.04},
      {.steps = 5'000, .one_in = 17, .reversed = true, .recorded = 0},
      {.steps = 5'000,
       .memory = 0.95,
       .shared_noise = 0.2,
       .one_in = 17,
       .reversed = true,
       .recorded = 0.1},
      {.steps = 5'000, .drift = 1, .one_in = 33, .reversed = true, .recorded = 0.03},
      {.steps = 5'000, .rare = 0.03, .one_in = 9, .reversed = true, .recorded = 0.03},
      {.steps = 5'000, .noise = 0.5, .one_in = 17, .reversed = true, .recorded = 0.02},
      {.steps = 5'000, .one_in = 17, .reversed = true, .recorded = 0, .doubled = 0.4},
      {.steps = 5'000, .one_in = 17, .reversed = true, .recorded = 0, .doubled = 0.6},
  };
  int number = 0;
  for (Training training : trainings) {
    training.wait = 10'000;
    EXPECT_GE(CoverageOf(training).recorded, kMostHold) << "of training " << number;
    ++number;
  }
}

TEST(StepCost, WindowsAmongStepsThatRestAreToldInNinetyOfAHundredTrainings) {
  const std::vector<Training> trainings = {
      {.steps = 1'500, .one_in = 17, .reversed = true, .recorded = 0.1},
      {.steps = 5'000, .noise = 0.1, .one_in = 17, .reversed = true, .recorded = 0.05},
      {.steps = 5'000, .longer = 0, .noise = 0.2, .one_in = 9, .reversed = true},
  };
  ExpectWindowsAreTold(trainings);
}

// A window's own steps are recorded, and few of those around it, or none.
TEST(StepCost, AWindowAmongStepsThatRestIsComparedAsIfTheseWereRecorded) {
  for (size_t one_in : {9, 17, 33}) {
    const Recording story = Recorded({.steps = 12'000,
                                      .wait = 20,
                                      .one_in = one_in,
                                      .reversed = true,
                                      .recorded = 0.2});
    const StepCost cost = CostOf(story.steps, story.changes);
    EXPECT_GT(cost.windows, 450u) << one_in;
    ASSERT_TRUE(cost.traced_longer && cost.recorded_longer) << one_in;
    EXPECT_NEAR(cost.traced_longer->share, 0.09, 0.02) << one_in;
    EXPECT_NEAR(cost.recorded_longer->share, 0.2, 0.03) << one_in;
    EXPECT_GT(cost.recorded_steps + cost.rested_steps, 11'990u);
  }
}

TEST(StepCost, OfFewControlStepsNothingIsClaimedAndABrokenOneIsNone) {
  std::vector<TimedStep> steps;
  for (uint64_t i = 1; i <= 100; ++i) {
    const uint64_t rests = i % 10 != 0 ? 0 : i == 50 ? 5 : 10;
    steps.push_back({i, i * 10, i * 10 + 10, rests});
  }
  StepCost cost = CostOf(steps, {});
  EXPECT_EQ(cost.control_steps, 9u);  // the last one has neighbours on one side
  EXPECT_TRUE(cost.recorded_longer);
  EXPECT_EQ(cost.untraced_steps, 90u);
  steps.resize(59);
  cost = CostOf(steps, {});
  EXPECT_EQ(cost.control_steps, 4u);
  EXPECT_FALSE(cost.recorded_longer);
  // Somebody traces in the middle of one: nobody knows why, and it is left out.
  cost = CostOf(steps, {{105, TracingIs::kOn}, {107, TracingIs::kOff}});
  EXPECT_EQ(cost.control_steps, 3u);
}

TEST(StepCost, IsNotMisledByStepsThatAreLongForOtherReasons) {
  const Coverage coverage = CoverageOf({.steps = 2'000, .rare = 0.03});
  EXPECT_GE(coverage.longer, kMostHold);
  const Recording story = Recorded({.steps = 5'000, .rare = 0.03});
  const StepCost cost = CostOf(story.steps, story.changes);
  EXPECT_NEAR(cost.paid->share, story.paid, 0.01);
}

TEST(StepCost, ClaimsNothingOfFewWindows) {
  const Recording story =
      Recorded({.steps = 5 + 6 * 26 - 1});  // five windows, and no sixth's end
  StepCost cost = CostOf(story.steps, story.changes);
  EXPECT_LT(cost.windows, kFewestWindows + 1);
  const Recording fewer = Recorded({.steps = 5 + 5 * 26 + 3});
  cost = CostOf(fewer.steps, fewer.changes);
  EXPECT_EQ(cost.windows, 5u);
  EXPECT_FALSE(cost.traced_longer);
  EXPECT_FALSE(cost.paid);
}

TEST(StepCost, ClaimsNothingWhereNoStepIsWithoutTracing) {
  Recording story = Recorded({});
  story.changes = {{0, TracingIs::kOn}};
  const StepCost cost = CostOf(story.steps, story.changes);
  EXPECT_FALSE(cost.traced_longer);
  EXPECT_EQ(cost.traced_steps, story.steps.size());
  EXPECT_EQ(cost.untraced_steps, 0u);
  EXPECT_FALSE(CostOf({}, {}).traced_longer);
}

TEST(StepCost, DoesNotCompareAcrossStepsThatAreMissing) {
  Recording story = Recorded({});
  // Of each window the steps around it are not known.
  std::vector<TimedStep> known;
  const std::vector<Condition> conditions = ConditionsOf(story.steps, story.changes);
  for (size_t i = 0; i < story.steps.size(); ++i) {
    const bool beside =
        (i > 0 && conditions[i - 1] == Condition::kEnds) ||
        (i + 1 < conditions.size() && conditions[i + 1] == Condition::kBegins);
    if (!beside) known.push_back(story.steps[i]);
  }
  const StepCost cost = CostOf(known, story.changes);
  EXPECT_EQ(cost.windows, 0u);
  EXPECT_FALSE(cost.traced_longer);
}

TEST(StepCost, FindsACostThatStaysAfterTheFirstWindow) {
  int found = 0, held = 0, invented = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const Recording stays = Recorded({.seed = seed, .stays = 0.2});
    const auto longer = CostOf(stays.steps, stays.changes).between_longer;
    found += longer && longer->low > 0 ? 1 : 0;
    held += Holds(longer, 0.2) ? 1 : 0;
    const Recording none = Recorded({.seed = seed});
    const auto nothing = CostOf(none.steps, none.changes).between_longer;
    invented += nothing && nothing->low > 0 ? 1 : 0;
  }
  EXPECT_GE(found, 95);
  EXPECT_GE(held, 85);
  EXPECT_LE(invented, 10);
}

TEST(StepCost, KnowsInWhichConditionEachStepWas) {
  const std::vector<TimedStep> steps = {{1, 0, 100},   {2, 100, 200}, {3, 200, 300},
                                        {4, 300, 400}, {5, 400, 500}, {6, 500, 600},
                                        {7, 600, 700}, {8, 700, 800}};
  const std::vector<TracingChange> changes = {
      {110, TracingIs::kOn},  {205, TracingIs::kOn},  {310, TracingIs::kOff},
      {450, TracingIs::kOn},  {460, TracingIs::kOff}, {520, TracingIs::kAnothers},
      {650, TracingIs::kOff}, {700, TracingIs::kOn}};
  const std::vector<Condition> expected = {Condition::kUntraced, Condition::kBegins,
                                           Condition::kTraced,   Condition::kEnds,
                                           Condition::kEnds,     Condition::kAnothers,
                                           Condition::kAnothers, Condition::kTraced};
  EXPECT_EQ(ConditionsOf(steps, changes), expected);
}

TEST(StepCost, TakesTheIntervalOfAMedianFromTheOrderAlone) {
  EXPECT_FALSE(MedianOf({1, 2, 3, 4, 5}));
  const auto six = MedianOf({6, 1, 5, 2, 4, 3});
  ASSERT_TRUE(six);
  EXPECT_EQ(six->share, 3.5);
  EXPECT_EQ(six->low, 1);
  EXPECT_EQ(six->high, 6);
  std::vector<double> ten = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1e9};
  const auto robust = MedianOf(ten);
  ASSERT_TRUE(robust);
  EXPECT_EQ(robust->share, 5.5);
  EXPECT_EQ(robust->low, 2);  // P(fewer than 2 of 10 heads) = 0.011
  EXPECT_EQ(robust->high, 9);
}

}  // namespace
}  // namespace lull::steps
