// The timeline's own arithmetic: bins, thinned steps, steps that stand out. That it
// holds the same idle time as the rest of a report is tested in gpu_range_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "daemon/query/step_bands.h"
#include "daemon/query/timeline_bins.h"
#include "tests/daemon/units.h"

namespace lull::query {
namespace {

using ::testing::ElementsAre;

constexpr size_t kOfData = 5, kOfSync = 8;

TEST(TimelineBins, ShareAStretchAmongTheBinsThatItLiesIn) {
  TimelineBins bins(/*start_ns=*/1000, /*bin_ns=*/100, /*count=*/4);
  bins.AddTraced(1050, 1350, /*busy_ns=*/180, /*kernel_ns=*/90);
  bins.AddIdle(1090, 1210, kOfSync);
  lull::v1::TimelineBand band;
  bins.Fill(&band);
  EXPECT_THAT(band.traced_ns(), ElementsAre(50, 100, 100, 50));
  ASSERT_EQ(band.causes_size(), 1);
  EXPECT_EQ(band.causes(0).cause(), lull::v1::GAP_CAUSE_SYNC);
  EXPECT_THAT(band.causes(0).idle_ns(), ElementsAre(10, 100, 10));
  EXPECT_THAT(band.busy_ns(), ElementsAre(40, 0, 90, 50));
  EXPECT_THAT(band.kernel_ns(), ElementsAre(20, 0, 45, 25));
}

TEST(TimelineBins, LeaveOutWhatLiesBeyondThem) {
  TimelineBins bins(1000, 100, 2);
  bins.AddIdle(0, 1010, kOfData);
  bins.AddIdle(1150, 5000, kOfData);
  bins.AddIdle(6000, 7000, kOfData);
  bins.AddSums(900, kOfData, 7);
  bins.AddSums(1200, kOfData, 7);
  bins.AddIdle(1000, 1100, /*cause=*/99);
  lull::v1::TimelineBand band;
  bins.Fill(&band);
  ASSERT_EQ(band.causes_size(), 1);
  EXPECT_THAT(band.causes(0).idle_ns(), ElementsAre(10, 50));
}

TEST(TimelineBins, OfSumsAreTheirSums) {
  TimelineBins bins(0, 16, 2);
  bins.AddTracedSums(3, 10, 6, 3);
  bins.AddTracedSums(15, 6, 2, 1);
  bins.AddSums(3, kOfSync, 4);
  bins.AddSums(15, kOfSync, 4);
  lull::v1::TimelineBand band;
  bins.Fill(&band);
  EXPECT_THAT(band.traced_ns(), ElementsAre(16));
  EXPECT_THAT(band.busy_ns(), ElementsAre(8));
  EXPECT_THAT(band.kernel_ns(), ElementsAre(4));
}

std::vector<lull::v1::StepRow> Steps(size_t count, uint64_t duration_ns) {
  std::vector<lull::v1::StepRow> steps(count);
  for (size_t i = 0; i < count; ++i) {
    steps[i].set_pid(7);
    steps[i].set_rank(1);
    steps[i].set_number(i + 1);
    steps[i].set_start_ns(i * duration_ns);
    steps[i].set_duration_ns(duration_ns + i % 3);
    steps[i].set_data_ns(duration_ns / 10);
    steps[i].set_other_ns(steps[i].duration_ns() - steps[i].data_ns());
  }
  return steps;
}

TEST(StepBands, KeepAllStepsThatFit) {
  std::vector<lull::v1::StepRow> steps = Steps(50, 1'000'000);
  steps[0].set_duration_ns(0);  // nobody knows when it began
  lull::v1::Timeline timeline;
  AddSteps(steps, 100, &timeline);
  ASSERT_EQ(timeline.steps_size(), 1);
  EXPECT_EQ(timeline.steps(0).rank(), 1);
  EXPECT_EQ(timeline.steps(0).count(), 49u);
  EXPECT_EQ(timeline.steps(0).number_size(), 49);
  EXPECT_EQ(timeline.steps(0).number(0), 2u);
  EXPECT_EQ(timeline.outliers_in_all(), 0u);
}

TEST(StepBands, KeepTheLongestOfManySteps) {
  std::vector<lull::v1::StepRow> steps = Steps(5'000, 1'000'000);
  for (size_t at : {17u, 2'500u, 4'999u}) steps[at].set_duration_ns(9'000'000);
  lull::v1::Timeline timeline;
  AddSteps(steps, 100, &timeline);
  const auto& band = timeline.steps(0);
  EXPECT_EQ(band.count(), 5'000u);
  EXPECT_LE(band.number_size(), 100);
  EXPECT_EQ(band.number_size(), band.duration_ns_size());
  for (uint64_t number : {18u, 2'501u, 5'000u}) {
    EXPECT_THAT(band.number(), ::testing::Contains(number));
  }
  EXPECT_TRUE(std::is_sorted(band.number().begin(), band.number().end()));
}

TEST(StepBands, NameTheStepThatStandsOutAndWhatMadeItLong) {
  std::vector<lull::v1::StepRow> steps = Steps(40, 1'000'000);
  steps[30].set_duration_ns(3'000'000);
  steps[30].set_data_ns(1'900'000);
  steps[30].set_other_ns(1'100'000);
  lull::v1::Timeline timeline;
  AddSteps(steps, 100, &timeline);
  ASSERT_EQ(timeline.outliers_size(), 1);
  EXPECT_EQ(timeline.outliers_in_all(), 1u);
  EXPECT_EQ(timeline.outliers(0).step().number(), 31u);
  EXPECT_NEAR(timeline.outliers(0).times_median(), 3, 0.01);
  EXPECT_EQ(timeline.outliers(0).part(), "data");
  EXPECT_EQ(timeline.outliers(0).excess_ns(), 1'800'000u);
}

TEST(StepBands, FindNothingAmongFewStepsOrNoise) {
  lull::v1::Timeline timeline;
  std::vector<lull::v1::StepRow> few = Steps(9, 1'000'000);
  few[4].set_duration_ns(90'000'000);
  AddSteps(few, 100, &timeline);
  std::vector<lull::v1::StepRow> noisy = Steps(100, 1'000'000);
  for (size_t i = 0; i < noisy.size(); ++i) {
    noisy[i].set_duration_ns(1'000'000 + 30'000 * (i * 7 % 20));
  }
  AddSteps(noisy, 100, &timeline);
  EXPECT_EQ(timeline.outliers_in_all(), 0u);
}

}  // namespace
}  // namespace lull::query
