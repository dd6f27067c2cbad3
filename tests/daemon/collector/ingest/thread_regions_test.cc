#include "daemon/collector/ingest/thread_regions.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/base/event_views.h"

namespace lull::collector {
namespace {

constexpr uint64_t kAll = uint64_t{1} << 60;
constexpr ThreadId kMain{7}, kEngine{8}, kOther{9};

aggregate::Event Idle(ThreadId tid, uint64_t start, uint64_t end, uint32_t series) {
  aggregate::Event event;
  event.tid = Number(tid);
  event.start_ns = start;
  event.duration_ns = end - start;
  event.series = series;
  return event;
}

aggregate::Event Sample(ThreadId tid, uint64_t time, uint32_t series) {
  aggregate::Event event;
  event.tid = Number(tid);
  event.start_ns = time;
  SampleView{event}.set_weight_ns(5000);
  event.series = series;
  return event;
}

// (series, stack) -> (pieces, time)
using Told = std::map<std::pair<uint32_t, uint32_t>, std::pair<uint64_t, uint64_t>>;

Told Sum(const std::vector<ThreadRegions::Found>& found) {
  Told told;
  for (const ThreadRegions::Found& one : found) {
    auto& sum = told[{one.series, one.stack}];
    sum.first += one.sum.count;
    sum.second += one.sum.total_ns;
  }
  return told;
}

class ThreadRegionsTest : public ::testing::Test {
 protected:
  ThreadRegionsTest() { regions_.set_main_thread(kMain); }
  Told Advance(uint64_t judged = kAll) { return Sum(regions_.Advance(judged)); }
  ThreadRegions regions_;
};

TEST_F(ThreadRegionsTest, TheInnermostRegionHasIt) {
  regions_.AddIdle(Idle(kMain, 100, 400, 1));
  regions_.AddScope(kMain, 150, 250, 20);  // the inner one ends first
  regions_.AddScope(kMain, 50, 300, 10);
  EXPECT_EQ(Advance(), (Told{{{1, 20}, {1, 100}}, {{1, 10}, {2, 100}}}));
}

TEST_F(ThreadRegionsTest, WhatLiesInNoneIsNobodys) {
  regions_.AddIdle(Idle(kMain, 100, 200, 1));
  regions_.AddIdle(Idle(kMain, 300, 400, 1));
  regions_.AddScope(kMain, 200, 300, 10);
  EXPECT_EQ(Advance(), Told{});
}

TEST_F(ThreadRegionsTest, ASampleLiesInARegionFromItsBeginningUntilItsEnd) {
  for (uint64_t time : {99, 100, 199, 200}) {
    regions_.AddSample(Sample(kMain, time, static_cast<uint32_t>(time)));
  }
  regions_.AddScope(kMain, 100, 200, 10);
  EXPECT_EQ(Advance(), (Told{{{100, 10}, {1, 5000}}, {{199, 10}, {1, 5000}}}));
}

TEST_F(ThreadRegionsTest, WaitsForWhatComesLater) {
  const uint64_t end = 10 * ThreadRegions::kLateNs;
  regions_.AddScope(kMain, 100, end, 10);
  EXPECT_EQ(Advance(end + ThreadRegions::kLateNs - 1), Told{});
  regions_.AddIdle(Idle(kMain, 100, 300, 1));
  EXPECT_EQ(Advance(end + ThreadRegions::kLateNs), (Told{{{1, 10}, {1, 200}}}));
  EXPECT_EQ(Advance(), Told{}) << "once";
}

TEST_F(ThreadRegionsTest, TheEnginesThreadsAreInRegionsOfTheMainThread) {
  regions_.AddIdle(Idle(kEngine, 100, 400, 1));
  regions_.AddOfTheEngine(kEngine);
  regions_.AddScope(kEngine, 150, 200, 20);  // of a hook, or of what checkpoint repeats
  regions_.AddScope(kMain, 0, 300, 10);
  EXPECT_EQ(Advance(), (Told{{{1, 20}, {1, 50}}, {{1, 10}, {2, 150}}}));
}

TEST_F(ThreadRegionsTest, OtherThreadsWithRegionsAreInTheirOwnAlone) {
  regions_.AddIdle(Idle(kOther, 100, 400, 1));
  regions_.AddScope(kOther, 500, 600, 20);
  regions_.AddScope(kMain, 0, 1000, 10);
  EXPECT_EQ(Advance(), Told{});
}

TEST_F(ThreadRegionsTest, AThreadWithoutRegionsIsInTheMainThreads) {
  regions_.AddIdle(Idle(kOther, 100, 400, 1));
  regions_.AddScope(kMain, 0, 1000, 10);
  EXPECT_EQ(Advance(), (Told{{{1, 10}, {1, 300}}}));
}

TEST_F(ThreadRegionsTest, TellsNothingTwiceAfterARestart) {
  const uint64_t late = ThreadRegions::kLateNs;
  regions_.Restore(late + 250);
  regions_.AddIdle(Idle(kMain, 100, 400, 1));
  regions_.AddScope(kMain, 150, 250, 20);  // was told
  regions_.AddScope(kMain, 50, 300, 10);
  EXPECT_EQ(Advance(), (Told{{{1, 10}, {2, 100}}}));
}

TEST_F(ThreadRegionsTest, OfWhatWaitsForLongNothingIsLostInAll) {
  constexpr uint64_t kPieces = 5 * ThreadRegions::kMost;
  for (uint64_t i = 0; i < kPieces; ++i) {
    regions_.AddIdle(
        Idle(kMain, 1000 * i, 1000 * i + 500, static_cast<uint32_t>(i % 3)));
    ASSERT_LE(regions_.size(), ThreadRegions::kMost);
  }
  regions_.AddScope(kMain, 0, 1000 * kPieces, 10);
  uint64_t pieces = 0, time = 0;
  for (const auto& [key, sum] : Advance()) {
    pieces += sum.first;
    time += sum.second;
  }
  EXPECT_EQ(pieces, kPieces);
  EXPECT_EQ(time, 500 * kPieces);
}

TEST_F(ThreadRegionsTest, HoldsNoMoreThanItMay) {
  for (uint32_t i = 0; i < ThreadRegions::kMost + ThreadRegions::kMost / 4; ++i) {
    regions_.AddIdle(Idle(ThreadId{1 + i % 100'000}, 1000 * uint64_t{i},
                          1000 * uint64_t{i} + 500, i));
    ASSERT_LE(regions_.size(), ThreadRegions::kMost);
  }
}

// Random regions that nest, and stretches and samples anywhere: each instant is in the
// innermost one, found here by asking all of them.
TEST_F(ThreadRegionsTest, RandomRegionsAgreeWithASearchOfAllOfThem) {
  struct Span {
    uint64_t start, end;
    uint32_t stack;
  };
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    ThreadRegions regions;
    std::vector<Span> open, all;
    uint64_t now = 0;
    uint32_t stack = 0;
    for (int i = 0; i < 40; ++i) {
      now += 1 + random() % 20;
      if (!open.empty() && random() % 2 == 0) {
        open.back().end = now;
        all.push_back(open.back());
        open.pop_back();
      } else {
        open.push_back({now, 0, ++stack});
      }
    }
    while (!open.empty()) {
      open.back().end = ++now;
      all.push_back(open.back());
      open.pop_back();
    }
    Told expected;
    uint32_t series = 0;
    for (uint64_t at = 0; at < now;) {
      const uint64_t end = at + 1 + random() % 50;
      ++series;
      regions.AddIdle(Idle(kMain, at, end, series));
      for (uint64_t t = at; t < end; ++t) {
        const Span* inner = nullptr;
        for (const Span& span : all) {
          if (t < span.start || t >= span.end) continue;
          if (inner == nullptr || span.start > inner->start) inner = &span;
        }
        if (inner != nullptr) ++expected[{series, inner->stack}].second;
      }
      at = end + random() % 10;
    }
    for (const Span& span : all)
      regions.AddScope(kMain, span.start, span.end, span.stack);
    Told told;
    for (const auto& [key, sum] : Sum(regions.Advance(kAll)))
      told[key].second = sum.second;
    EXPECT_EQ(told, expected);
  }
}

}  // namespace
}  // namespace lull::collector
