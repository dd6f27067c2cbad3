// Windows in steps, as torch.profiler.schedule has them.
#include <gtest/gtest.h>

#include <string>

#include "preload/cupti/schedule.h"

namespace lull::cupti {
namespace {

// One letter a step: '.' off, 'w' warm-up, 'A' active.
std::string plan(const Schedule& schedule, uint64_t steps) {
  std::string letters;
  for (uint64_t step = 0; step < steps; ++step) {
    letters += ".wA"[static_cast<int>(plan_step(schedule, step).state)];
  }
  return letters;
}

TEST(Schedule, SkipsWaitsWarmsUpAndTracesAgainAndAgain) {
  EXPECT_EQ(
      plan({.skip_first = 2, .wait = 1, .warmup = 1, .active = 3, .repeat = 0}, 17),
      ".."
      "."
      "wAAA"
      "."
      "wAAA"
      "."
      "wAAA");
}

TEST(Schedule, EndsAfterAsManyWindowsAsAskedFor) {
  EXPECT_EQ(
      plan({.skip_first = 1, .wait = 1, .warmup = 1, .active = 1, .repeat = 2}, 12),
      "."
      ".wA"
      ".wA"
      ".....");
}

TEST(Schedule, WithoutWaitOneWindowFollowsTheOther) {
  EXPECT_EQ(
      plan({.skip_first = 0, .wait = 0, .warmup = 1, .active = 2, .repeat = 0}, 6),
      "wAAwAA");
  EXPECT_EQ(
      plan({.skip_first = 0, .wait = 0, .warmup = 0, .active = 1, .repeat = 0}, 3),
      "AAA");
}

TEST(Schedule, WithoutAnyStepToTraceIsOff) {
  EXPECT_EQ(
      plan({.skip_first = 0, .wait = 0, .warmup = 0, .active = 0, .repeat = 0}, 3),
      "...");
  EXPECT_EQ(
      plan({.skip_first = 0, .wait = 5, .warmup = 0, .active = 0, .repeat = 0}, 7),
      ".......");
}

TEST(Schedule, NumbersItsWindows) {
  Schedule schedule = {
      .skip_first = 3, .wait = 2, .warmup = 1, .active = 1, .repeat = 0};
  EXPECT_EQ(plan_step(schedule, 5).window, 0u);
  EXPECT_EQ(plan_step(schedule, 6).window, 0u);
  EXPECT_EQ(plan_step(schedule, 7).window, 1u) << "the wait before the second";
  EXPECT_EQ(plan_step(schedule, 9).window, 1u);
}

TEST(Schedule, HoldsAfterBillionsOfSteps) {
  Schedule schedule = {.skip_first = UINT32_MAX,
                       .wait = UINT32_MAX,
                       .warmup = UINT32_MAX,
                       .active = 1,
                       .repeat = 1};
  uint64_t last = uint64_t{3} * UINT32_MAX;
  EXPECT_EQ(plan_step(schedule, last - 1).state, abi::TracingState::kWarmUp);
  EXPECT_EQ(plan_step(schedule, last).state, abi::TracingState::kActive);
  EXPECT_EQ(plan_step(schedule, last + 1).state, abi::TracingState::kOff);
}

TEST(Schedule, IsReadFromTheControlBlock) {
  abi::ControlBlock control = {};
  control.gpu_skip_first = 1;
  control.gpu_wait = 2;
  control.gpu_warmup = 3;
  control.gpu_active = 4;
  control.gpu_repeat = 5;
  Schedule schedule = schedule_of(control);
  EXPECT_EQ(schedule.skip_first, 1u);
  EXPECT_EQ(schedule.wait, 2u);
  EXPECT_EQ(schedule.warmup, 3u);
  EXPECT_EQ(schedule.active, 4u);
  EXPECT_EQ(schedule.repeat, 5u);
}

}  // namespace
}  // namespace lull::cupti
