#include "daemon/export/call_lines.h"

#include <gtest/gtest.h>

#include <vector>

namespace lull::exports {
namespace {

Slice Of(uint64_t start_ns, uint64_t duration_ns, uint32_t tid = 1) {
  Slice slice;
  slice.start_ns = start_ns;
  slice.duration_ns = duration_ns;
  slice.tid = tid;
  return slice;
}

TEST(CallLines, AHookHasTheTimesOfItsCall) {
  CallLines lines;
  // It began a moment after the call, by another clock.
  lines.AddHook({7, Of(10'300, 5'000)});
  lines.AddCall(Of(10'000, 4'000));
  lines.AddCall(Of(10'500, 3'000));  // the driver's within it
  lines.AddHook({8, Of(90'000, 5'000)});
  auto told = lines.TakeAll();
  ASSERT_EQ(told.size(), 2u);
  EXPECT_EQ(told[0].series, 7u);
  EXPECT_TRUE(told[0].has_call);
  EXPECT_EQ(told[0].slice.start_ns, 10'000u);
  EXPECT_EQ(told[0].slice.duration_ns, 4'000u);
  EXPECT_FALSE(told[1].has_call);
  EXPECT_EQ(told[1].slice.start_ns, 90'000u);
}

TEST(CallLines, OfLaunchesCloseToEachOtherEachGetsItsOwn) {
  CallLines lines;
  for (uint64_t i = 0; i < 100; ++i) {
    lines.AddHook({static_cast<uint32_t>(i), Of(1'000'000 + 2'000 * i, 1'800)});
    // Another one is longer.
    lines.AddCall(Of(1'000'100 + 2'000 * i, i % 3 == 0 ? 1'600 : 1'200));
  }
  const auto told = lines.TakeAll();
  ASSERT_EQ(told.size(), 100u);
  for (uint64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(told[i].slice.start_ns, 1'000'100 + 2'000 * i) << i;
  }
}

TEST(CallLines, HoldsNoMoreThanItMay) {
  CallLines lines;
  size_t told = 0, held = 0;
  for (uint64_t i = 0; i < 900'000; ++i) {
    lines.AddHook({1, Of(1'000 * i, 500, static_cast<uint32_t>(i % 50))});
    ++held;
    const size_t done = lines.Take().size();
    told += done;
    held -= done;
    ASSERT_LE(held, CallLines::kMostHeld + 1);
  }
  EXPECT_EQ(told + lines.TakeAll().size(), 900'000u);
}

// CUPTI hands out one thread's calls, and seconds later those of another that were made
// meanwhile.
TEST(CallLines, AHookWaitsForTheCallsOfItsThread) {
  CallLines lines;
  constexpr uint64_t kMillisecond = 1'000'000;
  for (uint64_t i = 0; i < 1000; ++i) {
    for (uint32_t tid : {1, 2}) {
      lines.AddHook({0, Of(i * kMillisecond + 1'000, 20'000, tid)});
    }
  }
  size_t with = 0, told = 0;
  auto look = [&](const std::vector<CallLines::Held>& some) {
    told += some.size();
    for (const auto& hook : some) with += hook.has_call;
  };
  for (uint32_t tid : {2, 1}) {
    for (uint64_t i = 0; i < 1000; ++i) {
      lines.AddCall(Of(i * kMillisecond + 2'000, 10'000, tid));
      look(lines.Take());
    }
  }
  look(lines.TakeAll());
  EXPECT_EQ(told, 2000u);
  EXPECT_EQ(with, 2000u);
}

// Those of which the calls are yet to come are not among them.
TEST(CallLines, BeyondWhatItMayHoldTheOldestGo) {
  CallLines lines;
  size_t without = 0;
  for (uint64_t i = 0; i < CallLines::kMostHeld + 1; ++i) {
    lines.AddHook({0, Of(10'000 * i, 5'000)});
    for (const auto& hook : lines.Take()) without += !hook.has_call;
  }
  EXPECT_NEAR(static_cast<double>(without), CallLines::kMostHeld / 2.0, 2);
}

TEST(CallLines, OthersThreadsCallsAreNotTaken) {
  CallLines lines;
  lines.AddHook({1, Of(1'000, 500, 1)});
  lines.AddCall(Of(1'000, 500, 2));
  EXPECT_FALSE(lines.TakeAll()[0].has_call);
}

}  // namespace
}  // namespace lull::exports
