// Busy workers over time, and how many would keep up: of figures whose answer is known.
#include "daemon/query/worker_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/daemon/units.h"

namespace lull::test {
namespace {

using query::WorkerTime;
using query::WorkerTimes;
using ::testing::HasSubstr;

// A second with `workers` of which `busy_percent` of the samples are busy; the training
// waited for `waited` of it.
WorkerTime Second(uint64_t workers, uint64_t busy_percent, uint64_t waited_ns = 0) {
  constexpr uint64_t kWeight = 10 * kMs;
  constexpr uint64_t kSquare = 10'000ull * 10'000;
  WorkerTime time;
  time.life_ns = workers * kSecond;
  time.known = {100 * workers, 100 * workers * kWeight, 100 * workers * kSquare};
  time.busy = {busy_percent * workers, busy_percent * workers * kWeight,
               busy_percent * workers * kSquare};
  time.calls = 10;
  time.waited_ns = waited_ns;
  return time;
}

WorkerTimes Of(std::vector<WorkerTime> seconds) {
  WorkerTimes times;
  times.begin_ns = 5 * kSecond;
  times.length_ns = kSecond;
  times.owners[1] = std::move(seconds);
  return times;
}

TEST(EnoughWorkers, IsTheirBusyTimeInTheTimeThatTheTrainingNeeds) {
  // One worker that is always busy, and a training that computes a quarter of the time.
  lull::v1::LoaderWorkers out;
  FillEnough(Of(std::vector<WorkerTime>(20, Second(1, 100, 750 * kMs))), &out);
  EXPECT_EQ(out.no_estimate(), "");
  EXPECT_NEAR(out.enough(), 4, 1e-9);
  EXPECT_LT(out.enough_low(), 4);
  EXPECT_GE(out.enough_high(), 4);
}

TEST(EnoughWorkers, SaysHowSureItIs) {
  // 18 of 20 seconds count: 1800 samples, half of them busy: 50 % +- 2.3.
  lull::v1::LoaderWorkers out;
  FillEnough(Of(std::vector<WorkerTime>(20, Second(1, 50))), &out);
  EXPECT_NEAR(out.enough(), 0.5, 1e-9);
  EXPECT_NEAR(out.enough_low(), 0.477, 0.001);
  EXPECT_NEAR(out.enough_high(), 0.523, 0.001);
}

TEST(EnoughWorkers, IsForEachOfSeveralTrainings) {
  WorkerTimes times = Of(std::vector<WorkerTime>(20, Second(2, 60)));
  times.owners[7] = times.owners[1];
  lull::v1::LoaderWorkers out;
  FillEnough(times, &out);
  EXPECT_NEAR(out.enough(), 1.2, 1e-9);
}

TEST(EnoughWorkers, LeavesOutTimesWithoutBatches) {
  std::vector<WorkerTime> seconds(20, Second(1, 100, 500 * kMs));
  for (size_t i = 8; i < 14; ++i) {  // an evaluation: the workers wait meanwhile
    seconds[i] = Second(1, 0);
    seconds[i].calls = 0;
  }
  seconds.front() = seconds.back() = Second(1, 10);  // where it begins and ends
  lull::v1::LoaderWorkers out;
  FillEnough(Of(seconds), &out);
  EXPECT_NEAR(out.enough(), 2, 1e-9);
}

std::string WhyNot(const std::vector<WorkerTime>& seconds) {
  lull::v1::LoaderWorkers out;
  FillEnough(Of(seconds), &out);
  EXPECT_EQ(out.enough(), 0);
  EXPECT_EQ(out.enough_high(), 0);
  return out.no_estimate();
}

TEST(EnoughWorkers, IsNotToldWhereTheDataDoNotAllowIt) {
  EXPECT_THAT(WhyNot({}), HasSubstr("was not seen"));
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(4, Second(1, 50))),
              HasSubstr("was not seen"));
  WorkerTime time = Second(1, 50);
  time.calls = 0;
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(20, time)), HasSubstr("was not seen"));
  time = Second(1, 50);
  time.ready_ns = 100 * kMs;
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(20, time)),
              HasSubstr("lacked processors"));
  time = Second(1, 50);
  time.unknown_ns = 100 * kMs;
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(20, time)), HasSubstr("no stack"));
  time = Second(1, 100, 995 * kMs);
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(20, time)), HasSubstr("no pace"));
  time = Second(1, 50);
  time.known.samples = 1;
  EXPECT_THAT(WhyNot(std::vector<WorkerTime>(20, time)), HasSubstr("too few samples"));
}

TEST(BusyWorkers, AreToldOverTimeWithMeanAndPercentile) {
  std::vector<WorkerTime> seconds(20, Second(4, 25));
  seconds[3] = Second(4, 75);
  seconds[4] = Second(4, 75);
  lull::v1::LoaderWorkers out;
  FillOverTime(Of(seconds), &out);
  ASSERT_EQ(out.over_time_size(), 20);
  EXPECT_EQ(out.over_time(0).start_ns(), 5 * kSecond);
  EXPECT_EQ(out.over_time(0).end_ns(), 6 * kSecond);
  EXPECT_NEAR(out.over_time(0).workers(), 4, 1e-9);
  EXPECT_NEAR(out.over_time(0).busy(), 1, 1e-9);
  EXPECT_NEAR(out.over_time(3).busy(), 3, 1e-9);
  EXPECT_NEAR(out.busy_mean(), 1.2, 1e-9);
  EXPECT_NEAR(out.busy_95(), 3, 1e-9) << "two of twenty are above";
}

TEST(BusyWorkers, HaveNoPercentileOfFewStretches) {
  lull::v1::LoaderWorkers out;
  FillOverTime(Of(std::vector<WorkerTime>(19, Second(2, 50))), &out);
  EXPECT_NEAR(out.busy_mean(), 1, 1e-9);
  EXPECT_EQ(out.busy_95(), 0);
}

TEST(BusyWorkers, AreToldOfStretchesWithEnoughSamples) {
  WorkerTime few = Second(1, 50);
  few.known = {10, kSecond, 10'000'000'000};
  few.busy = {5, kSecond / 2, 5'000'000'000};
  lull::v1::LoaderWorkers out;
  FillOverTime(Of(std::vector<WorkerTime>(7, few)), &out);
  ASSERT_EQ(out.over_time_size(), 2) << "the seventh second has too few by itself";
  EXPECT_EQ(out.over_time(1).start_ns(), 8 * kSecond);
  EXPECT_EQ(out.over_time(1).end_ns(), 11 * kSecond);
  EXPECT_NEAR(out.over_time(1).busy(), 0.5, 1e-9);
}

TEST(BusyWorkers, AreOfNoTimeWithoutWorkers) {
  std::vector<WorkerTime> seconds(3, Second(2, 50));
  seconds[1] = {};
  lull::v1::LoaderWorkers out;
  FillOverTime(Of(seconds), &out);
  ASSERT_EQ(out.over_time_size(), 2);
  EXPECT_EQ(out.over_time(1).start_ns(), 7 * kSecond);
  EXPECT_NEAR(out.busy_mean(), 1, 1e-9);
}

}  // namespace
}  // namespace lull::test
