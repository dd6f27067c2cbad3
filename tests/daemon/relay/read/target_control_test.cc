// What a relay writes into the control block of a target whose hooks cost more than its
// budget.
#include "daemon/relay/read/target_control.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/daemon/relay/fake_segment.h"
#include "tests/daemon/units.h"

namespace lull::relay {
namespace {

constexpr uint64_t kStepNs = 10 * kMs;

// A training whose hooks take `percent` of its time, whatever detail they leave out.
class CostlyTraining : public testing::Test {
 protected:
  void Begin(const lull::v1::JobSettings& settings,
             v1::GpuMode mode = v1::GPU_MODE_HOST) {
    GpuPlan plan;
    plan.mode = mode;
    target_ = std::make_unique<TargetControl>(reader_, settings, plan, nullptr, 77);
  }
  void RunFor(int seconds, double percent, bool with_steps = true) {
    for (int i = 0; i < 4 * seconds; ++i) {
      if (with_steps) {
        for (uint64_t step = 0; step < 250 * kMs / kStepNs; ++step) {
          const uint64_t begin = now_ + step * kStepNs;
          target_->StepSeen({++steps_, begin, begin + kStepNs, 0});
        }
      }
      now_ += 250 * kMs;
      hooks_ns_ += static_cast<uint64_t>(percent / 100 * (250 * kMs));
      // The end of each step, of a process that is not traced.
      segment_.view().header().gpu_self_ns.fetch_add(250 * kMs / kStepNs * kUs);
      target_->Govern(now_, hooks_ns_);
    }
  }
  uint32_t Halvings() { return segment_.view().control().recorded_halvings.load(); }
  uint32_t ControlSteps() { return segment_.view().control().control_steps.load(); }

  FakeSegment segment_;
  SegmentReader reader_{segment_.base()};
  std::unique_ptr<TargetControl> target_;
  uint64_t now_ = 50 * kSecond;
  uint64_t hooks_ns_ = 0;
  uint64_t steps_ = 0;
};

TEST_F(CostlyTraining, RecordsSomeStepsOnceNothingElseHoldsItsBudget) {
  Begin({});
  RunFor(20, 2.2);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinLaunches});
  EXPECT_EQ(Halvings(), 0u) << "30 s worth of the budget are not used up yet";
  EXPECT_EQ(ControlSteps(), 0u);
  RunFor(30, 2.2);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsIfSpent);
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
  EXPECT_EQ(target_->highest_thinning(), uint32_t{abi::kThinSteps});
}

TEST_F(CostlyTraining, RecordsAllStepsAsLongAsDetailHoldsItsBudget) {
  Begin({});
  RunFor(600, 0.95);
  EXPECT_EQ(Halvings(), 0u);
  EXPECT_LT(target_->highest_thinning(), uint32_t{abi::kThinSteps});
}

// Else hooks would leave nothing to windows.
TEST_F(CostlyTraining, IsToLeaveAPartOfTheBudgetToWindows) {
  Begin({}, v1::GPU_MODE_WINDOW);
  RunFor(600, 0.95);
  EXPECT_EQ(Halvings(), 0u) << "there are none that would want it";
  for (int i = 0; i < 600 && Halvings() == 0; ++i) {
    segment_.view().header().gpu_self_ns.fetch_add(10 * kMs);
    RunFor(9, 0.95);
  }
  EXPECT_EQ(Halvings(), StepShare::kHalvingsIfSpent);
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
  RunFor(1, 2.2);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsIfSpent) << "as soon as it does";
}

TEST_F(CostlyTraining, GoesOnAsItWasWithANewReader) {
  Begin({});
  RunFor(60, 2.2);
  ASSERT_NE(Halvings(), 0u);
  Begin({});
  EXPECT_EQ(ControlSteps(), StepShare::kControlOneIn);
  RunFor(1, 0.1);
  EXPECT_EQ(Halvings(), StepShare::kHalvingsIfSpent);
}

}  // namespace
}  // namespace lull::relay
