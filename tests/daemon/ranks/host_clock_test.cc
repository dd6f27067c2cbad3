#include "daemon/ranks/host_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/trials.h"

namespace lull::ranks {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kHour = 3600 * kSecond;

TEST(HostClock, IsExactForTheReferenceItself) {
  const HostClock clock;
  EXPECT_EQ(clock.ToCommon(5), HostClock::kBase + 5);
  EXPECT_EQ(clock.FromCommon(HostClock::kBase + 5), 5u);
  EXPECT_EQ(clock.ErrorAt(HostClock::kBase + 5), 0u);
}

TEST(HostClock, HasNoTimeBeforeItBegan) {
  EXPECT_EQ(HostClock().FromCommon(HostClock::kBase - 5), 0u);
  const auto clock = HostClock::From({{100 * kSecond, 5000, 5000}});
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->FromCommon(HostClock::kBase - kHour), 0u);
}

TEST(HostClock, IsUnknownWithoutAReading) {
  EXPECT_FALSE(HostClock::From({}).has_value());
}

// A host that slept: its clock stood still.
TEST(HostClock, IsUnknownWhereReadingsContradictEachOther) {
  EXPECT_TRUE(HostClock::From({{kSecond, 0, 100}, {2 * kSecond, 400'000, 400'100}}));
  EXPECT_FALSE(HostClock::From({{kSecond, 0, 100}, {2 * kSecond, 600'000, 600'100}}));
}

TEST(HostClock, IsLessSureTheFartherAReadingIs) {
  const auto clock = HostClock::From({{100 * kSecond, -50'000, 50'000}});
  ASSERT_TRUE(clock);
  EXPECT_NEAR(clock->ErrorAt(clock->ToCommon(100 * kSecond)), 50'000, 10);
  EXPECT_NEAR(clock->ErrorAt(clock->ToCommon(101 * kSecond)), 550'000, 10);
  EXPECT_NEAR(clock->ErrorAt(clock->ToCommon(99 * kSecond)), 550'000, 10);
}

TEST(HostClock, IsSurerForTheReadingsAround) {
  const auto clock =
      HostClock::From({{100 * kSecond, -50'000, 50'000}, {110 * kSecond, -1000, 1000}});
  ASSERT_TRUE(clock);
  EXPECT_NEAR(clock->ErrorAt(clock->ToCommon(109 * kSecond)), 501'000, 10);
  EXPECT_NEAR(clock->ErrorAt(clock->ToCommon(101 * kSecond)), 550'000, 10);
}

// Hosts whose clocks wander by up to 500 ppm, read every ten seconds or so by bursts of
// whatever quality: where the truth is is never farther from what is told than is told.
TEST(HostClock, HoldsTheTruthOverHours) {
  std::mt19937_64 random(11);
  auto up_to = [&random](uint64_t most) { return random() % (most + 1); };
  for (int trial = 0; trial < Trials(300, 30); ++trial) {
    const double offset =
        (static_cast<double>(up_to(1'000'000)) - 500'000) * 1e9;  // days
    const double drift = (static_cast<double>(up_to(800)) - 400) * 1e-6;
    const double swing = static_cast<double>(up_to(90)) * 1e-6;  // and back, in an hour
    const double turns = 2 * M_PI / static_cast<double>(kHour);
    auto truth = [&](uint64_t host_ns) {
      const auto t = static_cast<double>(host_ns);
      return static_cast<int64_t>(
          std::llround(offset + drift * t + swing / turns * std::sin(turns * t)));
    };
    std::vector<ClockBound> readings;
    for (uint64_t t = 400 * kHour; t < 402 * kHour;
         t += kSecond + up_to(20 * kSecond)) {
      const auto below = static_cast<int64_t>(20'000 + up_to(2'000'000));
      const auto above = static_cast<int64_t>(20'000 + up_to(2'000'000));
      readings.push_back({t, truth(t) - below, truth(t) + above});
    }
    std::shuffle(readings.begin(), readings.end(), random);
    const auto clock = HostClock::From(readings);
    ASSERT_TRUE(clock) << trial;
    uint64_t before = 0;
    for (uint64_t t = 399 * kHour; t < 403 * kHour; t += 7 * kSecond + up_to(kSecond)) {
      const uint64_t told = clock->ToCommon(t);
      ASSERT_GT(told, before);
      before = told;
      const uint64_t real = t + HostClock::kBase + static_cast<uint64_t>(truth(t));
      const uint64_t apart = told > real ? told - real : real - told;
      ASSERT_LE(apart, clock->ErrorAt(told) + 2) << trial;
      const uint64_t back = clock->FromCommon(told);
      ASSERT_LE(back > t ? back - t : t - back, 2u);
    }
  }
}

TEST(HostClock, KeepsTheOrderOfTimes) {
  const auto clock =
      HostClock::From({{kSecond, 0, 10}, {2 * kSecond, -400'000, -399'990}});
  ASSERT_TRUE(clock);
  uint64_t before = 0;
  for (uint64_t t = kSecond - 5000; t < kSecond + 50'000; ++t) {
    const uint64_t common = clock->ToCommon(t);
    ASSERT_GE(common, before) << t;
    before = common;
  }
}

}  // namespace
}  // namespace lull::ranks
