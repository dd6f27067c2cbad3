#include "daemon/export/slice_lanes.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace lull::exports {
namespace {

// Reads begins and ends as a viewer does: an end is of what began last on its lane.
class Viewer : public LaneSink {
 public:
  struct Seen {
    uint64_t start_ns, end_ns;
    uint32_t label;
    size_t depth;
  };

  void Begin(size_t lane, const LaneSlice& slice) override {
    EXPECT_GE(slice.start_ns, latest_[lane]);
    latest_[lane] = slice.start_ns;
    open_[lane].push_back({slice.start_ns, 0, slice.label, open_[lane].size()});
  }
  void End(size_t lane, uint64_t time_ns) override {
    EXPECT_GE(time_ns, latest_[lane]);
    latest_[lane] = time_ns;
    ASSERT_FALSE(open_[lane].empty());
    Seen seen = open_[lane].back();
    open_[lane].pop_back();
    seen.end_ns = time_ns;
    seen_.push_back(seen);
  }
  void LeftOut() override { ++left_out_; }

  std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>> slices() const {
    std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>> all;
    for (const Seen& seen : seen_) all.emplace(seen.start_ns, seen.end_ns, seen.label);
    return all;
  }
  bool nothing_open() const {
    for (const auto& [lane, open] : open_) {
      if (!open.empty()) return false;
    }
    return true;
  }

  std::map<size_t, std::vector<Seen>> open_;
  std::map<size_t, uint64_t> latest_;
  std::vector<Seen> seen_;
  int left_out_ = 0;
};

LaneSlice Lying(uint64_t start_ns, uint64_t end_ns, uint32_t label = 0) {
  LaneSlice slice;
  slice.start_ns = start_ns;
  slice.end_ns = end_ns;
  slice.label = label;
  return slice;
}

TEST(SliceLanes, AnOuterSliceThatBeganAtTheSameMomentIsTheOuterOne) {
  SliceLanes lanes(/*nested=*/true);
  Viewer viewer;
  lanes.Add(Lying(10, 15, 1), viewer);  // the inner one ends first, and comes first
  lanes.Add(Lying(10, 20, 2), viewer);
  lanes.Add(Lying(20, 20, 3), viewer);
  lanes.Finish(viewer);
  EXPECT_EQ(viewer.slices(), (std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>>{
                                 {10, 15, 1}, {10, 20, 2}, {20, 20, 3}}));
  EXPECT_EQ(viewer.seen_[0].label, 1u);
  EXPECT_EQ(viewer.seen_[0].depth, 1u);
  EXPECT_EQ(viewer.latest_.size(), 1u);  // lanes
}

TEST(SliceLanes, WhatOverlapsWithoutNestingGetsALaneOfItsOwn) {
  for (bool nested : {true, false}) {
    SliceLanes lanes(nested);
    Viewer viewer;
    lanes.Add(Lying(0, 10, 1), viewer);
    lanes.Add(Lying(5, 15, 2), viewer);
    lanes.Add(Lying(16, 20, 3), viewer);
    lanes.Finish(viewer);
    EXPECT_EQ(viewer.latest_.size(), 2u);
    EXPECT_EQ(viewer.slices(), (std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>>{
                                   {0, 10, 1}, {5, 15, 2}, {16, 20, 3}}));
  }
}

TEST(SliceLanes, ALongSliceIsAroundAllThatEndedBefore) {
  SliceLanes lanes(/*nested=*/true);
  Viewer viewer;
  std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>> put;
  auto add = [&](const LaneSlice& slice) {
    lanes.Add(slice, viewer);
    put.emplace(slice.start_ns, slice.end_ns, slice.label);
  };
  constexpr uint64_t kSecond = 1'000'000'000;
  for (uint64_t i = 0; i < 100; ++i) add(Lying(i * kSecond, i * kSecond + 5, 1));
  add(Lying(0, 100 * kSecond, 2));
  add(Lying(0, 200 * kSecond, 3));
  lanes.Finish(viewer);
  EXPECT_EQ(viewer.slices(), put);
}

// Whatever comes, in whatever order: each slice is seen with its times, and no more are
// held than may be.
TEST(SliceLanes, RandomSlicesKeepTheirTimes) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    SliceLanes lanes(/*nested=*/round % 2 == 0);
    Viewer viewer;
    std::multiset<std::tuple<uint64_t, uint64_t, uint32_t>> put;
    const uint64_t unit = round % 3 == 0 ? 1 : round % 3 == 1 ? 1'000'000 : 400'000'000;
    uint64_t now = 0;
    for (uint32_t i = 0; i < 200; ++i) {
      now += random() % 4 * unit;
      const uint64_t lag = random() % 8 == 0 ? random() % 20 * unit : 0;
      const uint64_t end = now > lag ? now - lag : 0;
      const uint64_t duration = std::min(end, random() % 12 * unit);
      lanes.Add(Lying(end - duration, end, i), viewer);
      put.emplace(end - duration, end, i);
    }
    lanes.Finish(viewer);
    EXPECT_EQ(viewer.slices(), put) << round;
    EXPECT_TRUE(viewer.nothing_open());
    EXPECT_EQ(viewer.left_out_, 0);
  }
}

TEST(SliceLanes, HoldsNoMoreThanItMay) {
  SliceLanes lanes(/*nested=*/true);
  Viewer viewer;
  for (uint64_t i = 0; i < 200'000; ++i) {
    lanes.Add(Lying(i, i + 1), viewer);
    ASSERT_LE(lanes.held(), SliceLanes::kMostHeld);
  }
  lanes.Finish(viewer);
  EXPECT_EQ(viewer.seen_.size(), 200'000u);
}

TEST(SliceLanes, MoreAtOnceThanThereAreLanesAreCounted) {
  SliceLanes lanes(/*nested=*/false);
  Viewer viewer;
  for (uint32_t i = 0; i < SliceLanes::kMostLanes + 44; ++i) {
    lanes.Add(Lying(i, 10'000 + i, i), viewer);
  }
  lanes.Finish(viewer);
  EXPECT_EQ(viewer.seen_.size(), SliceLanes::kMostLanes);
  EXPECT_EQ(viewer.left_out_, 44);
}

}  // namespace
}  // namespace lull::exports
