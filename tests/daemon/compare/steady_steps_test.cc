#include "daemon/compare/steady_steps.h"

#include <gtest/gtest.h>

#include <functional>

namespace lull::compare {
namespace {

// Durations in ms of the steps 1, 2, ... of one process.
v1::ReportReply Whole(size_t steps, const std::function<uint64_t(size_t)>& ms,
                      uint64_t first_number = 1) {
  v1::ReportReply reply;
  v1::Steps* out = reply.add_details()->mutable_steps();
  uint64_t now_ns = 5;
  for (size_t i = 0; i < steps; ++i) {
    v1::StepRow* row = out->add_steps();
    row->set_pid(7);
    row->set_rank(-1);
    row->set_number(first_number + i);
    row->set_start_ns(now_ns);
    row->set_duration_ns(ms(i) * 1'000'000);
    now_ns += row->duration_ns();
  }
  return reply;
}

uint64_t Ten(size_t) { return 10; }

TEST(SteadyStepsTest, TheFirstTenAreLeftOutOrAQuarterOfFew) {
  auto of_many = SteadySteps(Whole(400, Ten));
  ASSERT_EQ(of_many.size(), 1);
  EXPECT_EQ(of_many[0].dropped, 20);  // 5 %
  EXPECT_EQ(of_many[0].steps.front().number, 21);
  EXPECT_TRUE(of_many[0].steady);
  auto of_few = SteadySteps(Whole(30, Ten));
  ASSERT_EQ(of_few.size(), 1);
  EXPECT_EQ(of_few[0].dropped, 7);
  EXPECT_TRUE(SteadySteps(Whole(19, Ten)).empty());
  EXPECT_TRUE(SteadySteps(Whole(22, Ten)).empty());  // what is left is too little
  EXPECT_TRUE(SteadySteps(v1::ReportReply()).empty());
}

TEST(SteadyStepsTest, AStepOfUnknownDurationIsNone) {
  auto steps = SteadySteps(Whole(100, [](size_t i) { return i == 0 ? 0 : 10; }));
  ASSERT_EQ(steps.size(), 1);
  EXPECT_EQ(steps[0].dropped + steps[0].steps.size(), 99);
}

TEST(SteadyStepsTest, AWarmUpIsLeftOut) {
  auto steps = SteadySteps(Whole(200, [](size_t i) { return i < 60 ? 15 : 10; }));
  ASSERT_EQ(steps.size(), 1);
  EXPECT_TRUE(steps[0].steady);
  EXPECT_GE(steps[0].dropped, 57);  // a running median of five steps
  EXPECT_LE(steps[0].dropped, 60);
}

TEST(SteadyStepsTest, WhatNeverSettlesIsSaid) {
  auto steps = SteadySteps(Whole(200, [](size_t i) { return i < 150 ? 20 : 10; }));
  ASSERT_EQ(steps.size(), 1);
  EXPECT_TRUE(steps[0].steady);  // most of the second half is as the first
  steps = SteadySteps(Whole(200, [](size_t i) { return i < 104 ? 20 : 10; }));
  EXPECT_FALSE(steps[0].steady);
  EXPECT_EQ(steps[0].steps.size(), 100);
}

TEST(SteadyStepsTest, StrayStepsDoNotDelayIt) {
  auto steps =
      SteadySteps(Whole(200, [](size_t i) { return i % 7 == 0 ? 300 : 10 + i % 3; }));
  EXPECT_LE(steps[0].dropped, 12);
}

TEST(SteadyStepsTest, AllRunsAreComparedByTheSameSteps) {
  compare::Run a, b;
  a.whole = Whole(300, Ten);
  b.whole = Whole(200, Ten, 101);
  const ChosenSteps chosen = ChooseSteps({&a, &b});
  EXPECT_TRUE(chosen.same_numbers);
  for (const compare::Run* run : {&a, &b}) {
    EXPECT_EQ(run->processes[0].steps.front().number, 111);
    EXPECT_EQ(run->processes[0].steps.back().number, 300);
  }
}

TEST(SteadyStepsTest, RunsWithoutCommonStepsKeepTheirs) {
  compare::Run a, b;
  a.whole = Whole(100, Ten);
  b.whole = Whole(100, Ten, 5000);
  EXPECT_FALSE(ChooseSteps({&a, &b}).same_numbers);
  EXPECT_EQ(a.processes[0].steps.size(), 90);
  EXPECT_EQ(b.processes[0].steps.size(), 90);
}

TEST(SteadyStepsTest, PiecesCoverTheTimeOfTheSteps) {
  auto steps = SteadySteps(Whole(33, Ten));
  const ProcessSteps& process = steps.at(0);
  size_t sum = 0;
  for (size_t piece = 0; piece < kPieces; ++piece) {
    sum += process.StepsOf(piece);
    EXPECT_LT(process.BeginOf(piece), process.BeginOf(piece + 1));
  }
  EXPECT_EQ(sum, process.steps.size());
  EXPECT_EQ(process.BeginOf(0), process.steps.front().start_ns);
  EXPECT_EQ(process.BeginOf(kPieces), 5 + 33 * 10'000'000u);
}

TEST(SteadyStepsTest, OfVeryManyProcessesTheFirstAreAsked) {
  compare::Run run;
  v1::Steps* out = run.whole.add_details()->mutable_steps();
  for (int rank = 19; rank >= 0; --rank) {
    for (uint64_t i = 0; i < 50; ++i) {
      v1::StepRow* row = out->add_steps();
      row->set_pid(static_cast<uint32_t>(500 - rank));
      row->set_rank(rank);
      row->set_number(i);
      row->set_start_ns(i * 10);
      row->set_duration_ns(10);
    }
  }
  EXPECT_EQ(ChooseSteps({&run}).processes_left_out, 4);
  ASSERT_EQ(run.processes.size(), kMostProcesses);
  EXPECT_EQ(run.processes.back().rank, 15);
}

}  // namespace
}  // namespace lull::compare
