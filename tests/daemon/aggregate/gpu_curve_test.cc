#include "daemon/aggregate/gpu_curve.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace lull::aggregate {
namespace {

TEST(GpuCurve, KnowsNothingOfWhatWasNotTraced) {
  GpuCurve curve;
  EXPECT_EQ(curve.Between(0, 100).traced_ns, 0u);
  curve.AddTraced(100, 200);
  EXPECT_EQ(curve.Between(0, 50).traced_ns, 0u);
  EXPECT_EQ(curve.Between(150, 170).traced_ns, 20u);
  EXPECT_EQ(curve.Between(0, 1000).traced_ns, 100u);
  EXPECT_EQ(curve.Between(300, 1000).traced_ns, 0u);
  EXPECT_EQ(curve.Between(170, 150).traced_ns, 0u);
}

TEST(GpuCurve, AnIdleStretchMayReachIntoTheNextTracedTime) {
  GpuCurve curve;
  curve.AddIdle(150, 250, 3);
  curve.AddTraced(100, 200);
  EXPECT_EQ(curve.Between(0, 1000).idle_ns[3], 50u);
  curve.AddTraced(200, 300);
  EXPECT_EQ(curve.Between(0, 1000).idle_ns[3], 100u);
  EXPECT_EQ(curve.Between(160, 240).idle_ns[3], 80u);
}

// What each nanosecond was, added up.
TEST(GpuCurve, IsTheSumOfItsInstants) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    constexpr uint64_t kEnd = 2000;
    constexpr int kUntraced = -2, kBusy = -1;
    std::vector<int> instants(kEnd, kUntraced);
    GpuCurve curve;
    uint64_t at = 0;
    while (at < kEnd) {
      uint64_t start = std::min<uint64_t>(kEnd, at + (random() % 2) * (random() % 50));
      uint64_t end = std::min<uint64_t>(kEnd, start + random() % 200);
      for (uint64_t t = start; t < end;) {
        uint64_t until = std::min<uint64_t>(end, t + random() % 30);
        int what = static_cast<int>(random() % (kGapCauses + 1)) - 1;
        for (uint64_t i = t; i < until; ++i) instants[i] = what;
        if (what != kBusy) curve.AddIdle(t, until, static_cast<size_t>(what));
        t = until;
      }
      curve.AddTraced(start, end);
      at = end;
    }
    for (int i = 0; i < 100; ++i) {
      uint64_t from = random() % kEnd, to = random() % kEnd;
      if (from > to) std::swap(from, to);
      GpuTime real;
      for (uint64_t t = from; t < to; ++t) {
        if (instants[t] != kUntraced) ++real.traced_ns;
        if (instants[t] >= 0) ++real.idle_ns[static_cast<size_t>(instants[t])];
      }
      GpuTime told = curve.Between(from, to);
      ASSERT_EQ(told.traced_ns, real.traced_ns) << seed;
      ASSERT_EQ(told.idle_ns, real.idle_ns) << seed;
    }
  }
}

TEST(GpuCurve, StaysSmallAndKeepsItsSums) {
  GpuCurve curve;
  constexpr uint64_t kStep = 100'000, kSteps = 1'000'000;  // 100 s
  for (uint64_t i = 0; i < kSteps; ++i) {
    curve.AddIdle(i * kStep, i * kStep + 30'000, 11);
    curve.AddTraced(i * kStep, (i + 1) * kStep);
    ASSERT_LE(curve.size(), GpuCurve::kMost + 4);
  }
  GpuTime all = curve.Between(0, kSteps * kStep);
  EXPECT_EQ(all.traced_ns, kSteps * kStep);
  EXPECT_EQ(all.idle_ns[11], kSteps * 30'000);
  // The newest is exact, the oldest in proportion.
  EXPECT_EQ(curve.Between((kSteps - 1) * kStep, kSteps * kStep).idle_ns[11], 30'000u);
  GpuTime old = curve.Between(kStep * 12'345, kStep * 32'345);
  EXPECT_NEAR(static_cast<double>(old.idle_ns[11]), 20'000 * 30'000.0, 1e6);
}

}  // namespace
}  // namespace lull::aggregate
