#include "daemon/base/clock_bound.h"

#include <gtest/gtest.h>

#include <random>

namespace lull {
namespace {

constexpr uint64_t kDayNs = 86'400'000'000'000;

TEST(ClockBound, IsNothingWithoutAProbe) { EXPECT_FALSE(BoundOf({}).has_value()); }

TEST(ClockBound, IsWhatTheDelaysLeaveOpen) {
  // Server 1000 ahead; 10 there, 30 back, 5 in between.
  const auto bound = BoundOf({{100, 1110, 1115, 145}});
  ASSERT_TRUE(bound.has_value());
  EXPECT_EQ(bound->at_ns, 145u);
  EXPECT_EQ(bound->low_ns, 970 - 1);  // and a nanosecond of drift
  EXPECT_EQ(bound->high_ns, 1010 + 1);
}

TEST(ClockBound, IsNothingWhereProbesContradictEachOther) {
  EXPECT_FALSE(BoundOf({{100, 1110, 1115, 145}, {200, 9210, 9215, 245}}).has_value());
  EXPECT_FALSE(BoundOf({{100, 1110, 1105, 145}}).has_value())
      << "answered before asked";
  EXPECT_FALSE(BoundOf({{100, 1110, 1115, 99}}).has_value())
      << "back before it was sent";
}

// Clocks days apart that move against each other, delays of which one way may be a
// thousand times the other.
TEST(ClockBound, HoldsTheTruthWhateverTheDelays) {
  std::mt19937_64 random(7);
  auto up_to = [&random](uint64_t most) { return random() % (most + 1); };
  uint64_t widest = 0;
  for (int trial = 0; trial < 20'000; ++trial) {
    const int64_t offset =
        static_cast<int64_t>(up_to(20 * kDayNs)) - static_cast<int64_t>(10 * kDayNs);
    const double drift = (static_cast<double>(up_to(1000)) - 500) * 1e-6;
    uint64_t now = 30 * kDayNs;
    const uint64_t begin = now;
    auto server = [&](uint64_t client) {
      return static_cast<uint64_t>(
          static_cast<int64_t>(client) + offset +
          static_cast<int64_t>(drift * static_cast<double>(client - begin)));
    };
    std::vector<ClockProbe> burst;
    for (int i = 0; i < 12; ++i) {
      ClockProbe probe;
      probe.sent_ns = now;
      now += 20'000 + up_to(up_to(10) == 0 ? 20'000'000 : 50'000);
      probe.received_ns = server(now);
      now += up_to(2'000);
      probe.answered_ns = server(now);
      now += 20'000 + up_to(up_to(10) == 0 ? 20'000'000 : 50'000);
      probe.back_ns = now;
      burst.push_back(probe);
      now += 500'000;
    }
    const auto bound = BoundOf(burst);
    ASSERT_TRUE(bound.has_value()) << trial;
    const int64_t truth =
        static_cast<int64_t>(server(bound->at_ns)) - static_cast<int64_t>(bound->at_ns);
    ASSERT_LE(bound->low_ns, truth + 2) << trial;
    ASSERT_GE(bound->high_ns, truth - 2) << trial;
    widest = std::max(widest, static_cast<uint64_t>(bound->high_ns - bound->low_ns));
  }
  EXPECT_LT(widest, 20'000'000u) << "a burst should be better than its worst probes";
}

}  // namespace
}  // namespace lull
