#include "daemon/relay/control/gpu_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "daemon/relay/process/channel.h"
#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

using ::testing::HasSubstr;

TEST(GpuPlan, ReadsAScheduleInSteps) {
  auto plan = ParseGpuSchedule("skip_first=10,wait=100,warmup=2,active=3,repeat=4");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_FALSE(plan->always_by_clock);
  EXPECT_EQ(plan->steps, (GpuPlan::Steps{10, 100, 2, 3}));
  EXPECT_EQ(plan->repeat, 4u);
  EXPECT_EQ(plan->clock, GpuPlan::Clock()) << "for processes without steps";
}

TEST(GpuPlan, ReadsAScheduleByTheClock) {
  auto plan = ParseGpuSchedule("wait=2s,warmup=500ms,active=1s,repeat=3");
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_TRUE(plan->always_by_clock);
  EXPECT_EQ(plan->clock, (GpuPlan::Clock{0, 2000 * kMs, 500 * kMs, 1000 * kMs}));
  EXPECT_EQ(plan->repeat, 3u);
}

TEST(GpuPlan, KeepsTheDefaultOfWhatIsNotNamed) {
  EXPECT_EQ(ParseGpuSchedule("active=7")->steps, (GpuPlan::Steps{5, 20, 1, 7}));
  EXPECT_EQ(ParseGpuSchedule("active=7s")->clock,
            (GpuPlan::Clock{0, 4000 * kMs, 200 * kMs, 7000 * kMs}));
}

TEST(GpuPlan, ZeroNeedsNoUnit) {
  EXPECT_EQ(ParseGpuSchedule("wait=0,warmup=0,active=1s")->clock,
            (GpuPlan::Clock{0, 0, 0, 1000 * kMs}));
  EXPECT_EQ(ParseGpuSchedule("wait=0,active=1")->steps, (GpuPlan::Steps{5, 0, 1, 1}));
}

TEST(GpuPlan, NamesTheWordThatIsWrong) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "\"\" is not of the form wait=20"},
      {"wait", "\"wait\" is not of the form"},
      {"wait=20,", "\"\" is not of the form"},
      {"pause=20",
       "\"pause\" is none of skip_first, wait, warmup, active, repeat and finalize"},
      {"wait=", "wait= is neither a number of steps nor a time like 500ms or 2s"},
      {"wait=ten", "wait=ten is neither"},
      {"wait=-1", "wait=-1 is neither"},
      {"wait=-1s", "wait=-1s is neither"},
      {"wait=+1", "wait=+1 is neither"},
      {"wait=2.5", "wait=2.5 is neither"},
      {"wait=5000000000", "wait=5000000000 is neither"},
      {"wait=25h", "wait=25h is neither"},
      {"wait=inf", "wait=inf is neither"},
      {"wait=20,active=1s", "active=1s: steps and times cannot be mixed"},
      {"wait=2s,active=1", "active=1: steps and times cannot be mixed"},
      {"wait=2s,wait=3s", "wait is there twice"},
      {"repeat=2s", "repeat=2s is not a number of windows"},
      {"finalize=2", "finalize=2 is neither 0 nor 1"},
      {"finalize=1s", "finalize=1s is neither 0 nor 1"},
      {"active=0", "active=0 would never trace"},
      {"active=0,wait=2s", "active=0 would never trace"},
  };
  for (const auto& [text, message] : cases) {
    auto plan = ParseGpuSchedule(text);
    EXPECT_EQ(plan.status().code(), absl::StatusCode::kInvalidArgument) << text;
    EXPECT_THAT(std::string(plan.status().message()), HasSubstr(message)) << text;
  }
}

TEST(GpuPlan, SaysWhatIsInForceAsItWouldBeGiven) {
  EXPECT_EQ(ScheduleText(GpuPlan()), "skip_first=5,wait=20,warmup=1,active=5,repeat=0");
  for (const char* text : {"skip_first=1,wait=2,warmup=3,active=4,repeat=5",
                           "skip_first=1,wait=2,warmup=3,active=4,repeat=5,finalize=1",
                           "skip_first=0,wait=1m30s,warmup=200ms,active=1s,repeat=0"}) {
    EXPECT_EQ(ScheduleText(*ParseGpuSchedule(text)), text);
  }
  for (lull::v1::GpuMode mode :
       {lull::v1::GPU_MODE_HOST, lull::v1::GPU_MODE_CONTINUOUS}) {
    GpuPlan plan;
    plan.mode = mode;
    EXPECT_EQ(ScheduleText(plan), "");
  }
}

TEST(GpuPlan, KnowsTheThreeModes) {
  EXPECT_EQ(*ParseGpuMode("host"), lull::v1::GPU_MODE_HOST);
  EXPECT_EQ(*ParseGpuMode("window"), lull::v1::GPU_MODE_WINDOW);
  EXPECT_EQ(*ParseGpuMode("continuous"), lull::v1::GPU_MODE_CONTINUOUS);
  EXPECT_THAT(std::string(ParseGpuMode("on").status().message()),
              HasSubstr("none of host, window and continuous"));
}

TEST(GpuPlan, ReachesTheWorkerAsItIs) {
  RelayOptions options;
  options.gpu = *ParseGpuSchedule(
      "skip_first=1s,wait=2s,warmup=3s,active=4s,repeat=5,finalize=1");
  options.gpu.steps = {6, 7, 8, 9};
  options.gpu.mode = lull::v1::GPU_MODE_CONTINUOUS;
  options.socket_path = "/run/\xff/relay";  // a path need not be text
  options.job.mutable_settings()->set_overhead_budget_percent(0.25);
  options.target_user = 1000;
  options.grace = absl::Milliseconds(7);
  RelayOptions decoded;
  ASSERT_TRUE(DecodeOptions(EncodeOptions(options), &decoded));
  EXPECT_EQ(decoded.gpu, options.gpu);
  EXPECT_EQ(decoded.socket_path, options.socket_path);
  EXPECT_EQ(OverheadBudgetPercent(decoded.job.settings()), 0.25);
  EXPECT_EQ(OverheadBudgetPercent(RelayOptions().job.settings()), 1.0);
  EXPECT_EQ(decoded.target_user, 1000u);
  EXPECT_EQ(decoded.grace, options.grace);
  EXPECT_FALSE(DecodeOptions("no options", &decoded));
}

TEST(GpuPlan, GoesIntoTheControlBlockOfASegmentThatIsNotMapped) {
  FakeSegment segment;
  GpuPlan plan =
      *ParseGpuSchedule("skip_first=1,wait=2,warmup=3,active=4,repeat=5,finalize=1");
  plan.mode = lull::v1::GPU_MODE_CONTINUOUS;
  ASSERT_TRUE(PrepareControl(plan, true, 77, segment.memfd()));
  const abi::ControlBlock& control = segment.view().control();
  EXPECT_EQ(control.gpu_mode, uint32_t{lull::v1::GPU_MODE_CONTINUOUS});
  EXPECT_EQ(control.gpu_skip_first, 1u);
  EXPECT_EQ(control.gpu_wait, 2u);
  EXPECT_EQ(control.gpu_warmup, 3u);
  EXPECT_EQ(control.gpu_active, 4u);
  EXPECT_EQ(control.gpu_repeat, 5u);
  EXPECT_EQ(control.gpu_finalize, 1u);
  EXPECT_FALSE(PrepareControl(plan, true, 77, -1));
}

}  // namespace
}  // namespace lull::relay
