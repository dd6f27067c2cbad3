#include <gtest/gtest.h>

#include <map>
#include <set>

#include "preload/abi/control_step.h"
#include "preload/steps/boundary.h"
#include "preload/steps/control_step.h"
#include "preload/support/clock.h"
#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

TEST(IsControlStep, OfEachSoManyStepsOneIsDrawn) {
  for (uint32_t one_in : {4u, 20u, 1000u}) {
    std::set<uint64_t> places;
    for (uint64_t block = 8; block < 108; ++block) {
      int drawn = 0;
      for (uint64_t place = 0; place < one_in; ++place) {
        if (!is_control_step(block * one_in + place, one_in, 0)) continue;
        ++drawn;
        places.insert(place);
      }
      EXPECT_EQ(drawn, 1) << block << " of " << one_in;
    }
    EXPECT_GE(places.size(), one_in / 4 > 20 ? 20u : 3u) << one_in;
  }
}

TEST(IsControlStep, NoneIsWhereNobodyAskedForItOrAmongTheFirst) {
  for (uint64_t number = 0; number < 1000; ++number) {
    EXPECT_FALSE(is_control_step(number, 0, 0));
    EXPECT_EQ(is_control_step(number, 1, 0), number > 8);
  }
  for (uint64_t number = 0; number <= 8; ++number) {
    EXPECT_FALSE(is_control_step(number, 1, abi::kMostHalvings));
  }
}

TEST(IsControlStep, AllButOneOfSoManyAreAndTheOthersAreNested) {
  for (uint32_t halvings = 1; halvings <= abi::kMostHalvings; ++halvings) {
    const uint64_t block_size = uint64_t{1} << halvings;
    std::set<uint64_t> places;
    for (uint64_t block = 16; block < 216; ++block) {
      int recorded = 0;
      for (uint64_t place = 0; place < block_size; ++place) {
        const uint64_t number = block * block_size + place;
        EXPECT_EQ(is_control_step(number, 0, halvings),
                  is_control_step(number, 16, halvings));
        if (is_control_step(number, 0, halvings)) continue;
        ++recorded;
        places.insert(place);
        EXPECT_FALSE(is_control_step(number, 0, halvings - 1));
      }
      EXPECT_EQ(recorded, 1) << block << " of " << block_size;
    }
    EXPECT_GT(places.size(), block_size * 3 / 4) << "drawn";
  }
  EXPECT_EQ(is_control_step(1 << 20, 0, 1000),
            is_control_step(1 << 20, 0, abi::kMostHalvings));
}

class ControlSteps : public ::testing::Test {
 protected:
  ControlSteps() { control().control_steps = 4; }

  abi::ControlBlock& control() { return segment_.view().control(); }
  void boundary() { step_boundary(abi::StepSource::kOptimizer); }
  // Goes on until a control step has begun.
  void reach_one() {
    for (int i = 0; i < 100 && recording_segment() != nullptr; ++i) boundary();
    ASSERT_EQ(recording_segment(), nullptr);
    ASSERT_EQ(control().armed, uint32_t{abi::kControlStep});
  }
  // The newest step that was recorded.
  abi::Event last_step() {
    abi::Event last = {};
    for (const abi::Event& event : segment_.unread(0)) {
      if (event.type == abi::EventType::kStep) last = event;
    }
    return last;
  }

  TestSegment segment_;
};

TEST_F(ControlSteps, HooksRestAndTheStepIsRecorded) {
  reach_one();
  const uint64_t before = last_step().arg0;
  boundary();
  EXPECT_EQ(recording_segment(), segment_.base());
  const abi::Event step = last_step();
  EXPECT_EQ(step.arg0, before + 1);
  EXPECT_GT(step.duration_ns, 0u);
  EXPECT_EQ(step.arg1, step.duration_ns);
  EXPECT_EQ(step.flags, 0u);
  EXPECT_EQ(control().control_until_ns, step.start_ns + step.duration_ns);
  EXPECT_TRUE(rested_since(segment_.base(), step.start_ns));
  boundary();
  EXPECT_EQ(last_step().arg0, before + 2);
  EXPECT_EQ(last_step().arg1, 0u) << "no two in a row";
}

TEST_F(ControlSteps, AllButOneOfEightAreWhereTheBudgetWantsIt) {
  control().control_steps = 0;
  control().recorded_halvings = 3;
  for (int i = 0; i < 16; ++i) boundary();
  std::map<bool, int> count;
  for (int i = 0; i < 800; ++i) {
    boundary();
    ++count[recording_segment() == nullptr];
  }
  EXPECT_NEAR(count[false], 100, 1);  // it begins and ends within eight
  EXPECT_EQ(last_step().arg0, 816u);
}

TEST_F(ControlSteps, OneOfFourIs) {
  std::map<bool, int> count;
  for (int i = 0; i < 400; ++i) {
    boundary();
    ++count[recording_segment() == nullptr];
  }
  EXPECT_GE(count[true], 80);  // a neighbour of another one is left out
  EXPECT_LE(count[true], 100);
}

TEST_F(ControlSteps, WhatTheRelayCutsOffWasNotRecordedUntilThen) {
  reach_one();
  const abi::Event before = last_step();
  const uint64_t began = before.start_ns + before.duration_ns;
  EXPECT_GT(control().control_until_ns, began + 100'000'000) << "how long it may last";
  EXPECT_EQ(control().control_since_ns, began);
  const uint32_t ended = control_steps_ended(segment_.base());
  const uint64_t cut = monotonic_ns();
  ASSERT_TRUE(abi::begin_to_wake(control()));
  EXPECT_EQ(recording_segment(), nullptr);
  EXPECT_EQ(control_step_segment(), nullptr);
  control().control_cut += 1;
  abi::wake(control(), cut);
  EXPECT_EQ(recording_segment(), segment_.base());
  EXPECT_EQ(control_steps_ended(segment_.base()), ended + 1);
  boundary();
  const abi::Event step = last_step();
  EXPECT_EQ(step.start_ns, began);
  EXPECT_EQ(step.arg1, cut - began);
  EXPECT_LT(step.arg1, step.duration_ns);
  EXPECT_EQ(step.flags, uint8_t{abi::kFlagCutOff});
  boundary();
  EXPECT_EQ(last_step().arg1, 0u);
  EXPECT_EQ(last_step().flags, 0u);
}

TEST_F(ControlSteps, AProcessThatIsPutToSleepMeanwhileStaysAsleep) {
  reach_one();
  const uint64_t before = last_step().arg0;
  control().armed = abi::kAsleep;
  boundary();
  EXPECT_EQ(recording_segment(), nullptr);
  EXPECT_EQ(control().armed, uint32_t{abi::kAsleep});
  EXPECT_EQ(last_step().arg0, before);
  control().arming = 1;
  control().armed = abi::kArmed;
  boundary();
  EXPECT_EQ(last_step().duration_ns, 0u) << "nobody knows when it began";
  EXPECT_EQ(last_step().arg1, 0u);
  boundary();
  EXPECT_GT(last_step().duration_ns, 0u);
  EXPECT_EQ(last_step().arg1, 0u);
}

TEST_F(ControlSteps, NoneIsWhereItsEndMightNotBeSeen) {
  for (int i = 0; i < 100; ++i) {
    step_boundary(abi::StepSource::kOptimizer, Seen::kWhileRecording);
    ASSERT_NE(recording_segment(), nullptr);
  }
}

TEST_F(ControlSteps, NoneIsBesideTracing) {
  segment_.view().header().cupti_state =
      static_cast<uint32_t>(abi::CuptiState::kTracing);
  for (int i = 0; i < 100; ++i) {
    boundary();
    EXPECT_NE(recording_segment(), nullptr);
  }
}

}  // namespace
}  // namespace lull
