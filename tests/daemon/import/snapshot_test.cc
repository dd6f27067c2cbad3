// Memory snapshots that were made by hand: what is read of them, and which events it
// becomes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "daemon/import/snapshot_events.h"
#include "daemon/import/snapshot_reader.h"
#include "tests/daemon/import/pickle_writer.h"

namespace lull::imports {
namespace {

using absl::StatusCode;
using pickled::Block;
using pickled::Entry;
using pickled::Frame;
using pickled::List;
using pickled::Segment;
using pickled::Whole;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Key;
using testing::Not;
using testing::Pair;

constexpr int64_t kStart = 1'790'000'000'000'000;  // us

// An event in short.
struct Told {
  std::string what;
  uint64_t address = 0;
  int64_t bytes = 0;
  std::string where;
  friend bool operator==(const Told&, const Told&) = default;
  friend void PrintTo(const Told& told, std::ostream* out) {
    *out << told.what << " " << told.address << " " << told.bytes << " " << told.where;
  }
};

class SnapshotTest : public testing::Test {
 protected:
  absl::StatusOr<Snapshot> Read(const std::string& bytes, SnapshotLimits limits = {}) {
    return ReadSnapshot(*Input::OfBytes(bytes), limits);
  }
  // All events of the snapshot but the last mark.
  std::vector<Told> EventsOf(const std::string& value) {
    auto snapshot = Read(Whole(value));
    if (!snapshot.ok()) {
      ADD_FAILURE() << snapshot.status();
      return {};
    }
    ApiTable apis;
    std::vector<Told> told;
    std::map<uint32_t, std::string> stacks;
    auto sink = [&](lull::v1::Batch* batch) {
      for (const auto& process : batch->stacks()) {
        int number = 0;  // of its innermost frame
        for (int i = 0; i < process.stacks_size(); ++i) {
          stacks[process.stacks(i).ref()] =
              process.frames(static_cast<int>(process.frame_numbers(number)))
                  .function();
          number += static_cast<int>(process.depths(i));
        }
      }
      for (const auto& ring : batch->rings()) Add(ring.events(), stacks, &told);
      return absl::OkStatus();
    };
    absl::Status done = TranslateSnapshot(*snapshot, 1, apis, sink, &counts_);
    EXPECT_TRUE(done.ok()) << done;
    return told;
  }
  void Add(const lull::v1::EventColumns& events,
           const std::map<uint32_t, std::string>& stacks, std::vector<Told>* told) {
    uint64_t now = events.base_ns();
    for (int i = 0; i < events.type_size(); ++i) {
      now += static_cast<uint64_t>(events.start_delta_ns(i));
      times_.push_back(now);
      auto place = stacks.find(events.python_stack(i));
      const std::string where = place == stacks.end() ? "" : place->second;
      const bool frees = (events.flags(i) & 1) != 0;
      const auto bytes = static_cast<int64_t>(events.arg1(i));
      switch (events.type(i)) {
        case lull::v1::EVENT_TYPE_TORCH_MEMORY:
          told->push_back({(events.flags(i) & 128) != 0 ? "before"
                           : frees                      ? "free"
                                                        : "alloc",
                           events.arg0(i), bytes, where});
          break;
        case lull::v1::EVENT_TYPE_TORCH_RESERVED:
          told->push_back({"reserved", 0, bytes, ""});
          EXPECT_EQ(events.python_stack(i), 0u);
          break;
        case lull::v1::EVENT_TYPE_DEVICE_MEMORY:
          told->push_back({"failed", 0, bytes, where});
          break;
        default:
          EXPECT_EQ(events.type(i),
                    static_cast<uint32_t>(lull::v1::EVENT_TYPE_GPU_MARK));
      }
    }
  }

  ImportCounts counts_;
  std::vector<uint64_t> times_;
};

std::string In(const std::string& function) {
  return List({Frame("/home/me/train.py", 12, function)});
}

TEST_F(SnapshotTest, AHistoryFromItsBeginning) {
  EXPECT_THAT(
      EventsOf(pickled::Snapshot(
          {Segment(4096, {Block(4096, 1024, "inactive", 0),
                          Block(5120, 512, "active_allocated", 500, In("keep"))})},
          {Entry("segment_alloc", 4096, 1536, kStart, In("load")),
           Entry("alloc", 4096, 1000, kStart, In("load")),
           Entry("alloc", 5120, 500, kStart + 5, In("keep")),
           Entry("free_requested", 4096, 1000, kStart + 9, In("load")),
           Entry("free_completed", 4096, 1000, kStart + 9, In("load"))})),
      ElementsAre(Told{"reserved", 0, 0, ""}, Told{"reserved", 0, 1536, ""},
                  Told{"alloc", 4096, 1000, "load"}, Told{"alloc", 5120, 500, "keep"},
                  Told{"free", 4096, 1000, "load"}));
  EXPECT_TRUE(std::is_sorted(times_.begin(), times_.end()));
  EXPECT_EQ(counts_.start_ns, static_cast<uint64_t>(kStart) * 1000);
  ASSERT_EQ(counts_.segments.size(), 1u);
  const auto& use = counts_.segments[0];
  EXPECT_EQ(use.reserved(), 1536u);
  EXPECT_EQ(use.allocated(), 512u);
  EXPECT_EQ(use.requested(), 500u);
  EXPECT_EQ(use.free_in_used(), 1024u);
  EXPECT_EQ(use.free_segments(), 0u);
  EXPECT_EQ(use.largest_free(), 1024u);
}

TEST_F(SnapshotTest, WhatWasThereBeforeTheHistoryIsThereAtItsStart) {
  EXPECT_THAT(
      EventsOf(pickled::Snapshot(
          {Segment(4096, {Block(4096, 512, "active_allocated", 400, In("model"))}),
           Segment(8192, {Block(8192, 2048, "inactive", 0)})},
          {Entry("alloc", 8192, 2000, kStart, In("step")),
           Entry("free_requested", 8192, 2000, kStart + 1),
           Entry("free_requested", 9000, 300, kStart + 2)})),
      ElementsAre(Told{"before", 0, 300, ""}, Told{"alloc", 4096, 400, "model"},
                  Told{"reserved", 0, 2560, ""}, Told{"alloc", 8192, 2000, "step"},
                  Told{"free", 8192, 2000, ""}, Told{"free", 9000, 300, ""}));
  EXPECT_THAT(counts_.found, Contains(Pair("blocks from before the history", 1u)));
  EXPECT_EQ(counts_.segments.at(0).free_segments(), 2048u);
  EXPECT_EQ(counts_.segments.at(0).free_in_used(), 0u);
}

TEST_F(SnapshotTest, AFewBlocksMayChangeWhileTheSnapshotIsTaken) {
  EXPECT_THAT(
      EventsOf(pickled::Snapshot(
          {Segment(4096, {Block(4096, 512, "active_allocated", 512, In("late")),
                          Block(4608, 512, "active_allocated", 512, In("old"))})},
          {Entry("alloc", 4096, 100, kStart, In("step")),
           Entry("free_requested", 4096, 100, kStart + 1),
           Entry("alloc", 9000, 70, kStart + 2, In("step"))})),
      ElementsAre(Told{"alloc", 4608, 512, "old"}, Told{"reserved", 0, 1024, ""},
                  Told{"alloc", 4096, 100, "step"}, Told{"free", 4096, 100, ""},
                  Told{"alloc", 9000, 70, "step"}, Told{"free", 9000, 70, ""},
                  Told{"alloc", 4096, 512, "late"}));
}

TEST_F(SnapshotTest, OfAHistoryThatWasStoppedNothingIsGuessed) {
  std::vector<std::string> entries;
  for (int i = 0; i < 20; ++i) {
    entries.push_back(Entry("alloc", 16384 + 512 * i, 100, kStart + i, In("step")));
  }
  const auto told = EventsOf(pickled::Snapshot(
      {Segment(4096, {Block(4096, 512, "active_allocated", 512, In("old"))})},
      entries));
  ASSERT_EQ(told.size(), 42u);
  EXPECT_EQ(told[0].where, "step");  // not the block that may be younger
  EXPECT_EQ(told[19].what, "alloc");
  EXPECT_EQ(told[20].what, "free");
  EXPECT_EQ(told[40], (Told{"alloc", 4096, 512, "old"}));
  EXPECT_EQ(told[41], (Told{"reserved", 0, 512, ""}));
  EXPECT_THAT(counts_.not_applied, Contains(HasSubstr("had been stopped")));
}

TEST_F(SnapshotTest, WithoutAHistoryTheEndIsAllThereIs) {
  const std::string segment =
      Segment(4096, {Block(4096, 512, "active_allocated", 400, In("model")),
                     Block(4608, 512, "active_pending_free", 400)});
  for (const std::string& value : {pickled::Snapshot({segment}, {}), List({segment})}) {
    counts_ = {};
    EXPECT_THAT(EventsOf(value), ElementsAre(Told{"alloc", 4096, 400, "model"},
                                             Told{"reserved", 0, 1024, ""}));
    EXPECT_THAT(counts_.not_applied, Contains(HasSubstr("no history")));
    EXPECT_EQ(counts_.segments.at(0).pending(), 512u);
  }
}

// PyTorch 2.0: blocks do not say where they lie, and who has them is in a list.
TEST_F(SnapshotTest, BlocksOfOldVersions) {
  const std::string history = List({pickled::Dict({{"addr", pickled::Number(4608)},
                                                   {"real_size", pickled::Number(77)},
                                                   {"frames", In("model")}})});
  const std::string block = pickled::Dict({{"size", pickled::Number(512)},
                                           {"state", pickled::Text("active_allocated")},
                                           {"history", history}});
  const std::string free = pickled::Dict(
      {{"size", pickled::Number(512)}, {"state", pickled::Text("inactive")}});
  EXPECT_THAT(
      EventsOf(List({Segment(4096, {free, block})})),
      ElementsAre(Told{"alloc", 4608, 77, "model"}, Told{"reserved", 0, 1024, ""}));
}

TEST_F(SnapshotTest, WithoutTimesTheOrderIsKept) {
  auto entry = [](const char* action, int64_t address) {
    return pickled::Dict({{"action", pickled::Text(action)},
                          {"addr", pickled::Number(address)},
                          {"size", pickled::Number(100)}});
  };
  const auto told = EventsOf(
      pickled::Snapshot({}, {entry("alloc", 512), entry("free_requested", 512),
                             entry("alloc", 512), entry("free_requested", 512)}));
  ASSERT_EQ(told.size(), 5u);
  EXPECT_EQ(told[4].what, "free");
  EXPECT_TRUE(std::is_sorted(times_.begin(), times_.end()));
  EXPECT_THAT(counts_.not_applied, Contains(HasSubstr("order alone")));
}

TEST_F(SnapshotTest, AnAllocationThatFoundNoMemory) {
  const auto told = EventsOf(
      pickled::Snapshot({}, {pickled::Dict({{"action", pickled::Text("oom")},
                                            {"device_free", pickled::Number(100)},
                                            {"size", pickled::Number(2000)},
                                            {"time_us", pickled::Number(kStart)},
                                            {"frames", In("big")}})}));
  EXPECT_THAT(told, Contains(Told{"failed", 0, 2000, "big"}));
}

TEST_F(SnapshotTest, FramesOfCppAreOfAnotherStack) {
  auto snapshot = Read(Whole(pickled::Snapshot(
      {},
      {Entry("alloc", 512, 100, kStart,
             List({Frame("??", 0, "torch::unwind::unwind()"),
                   Frame("x.cpp", 3, "at::_ops::empty::call(x)"),
                   Frame("/me/a.py", 3, "f"), Frame("<string>", 1, "<module>")}))})));
  ASSERT_TRUE(snapshot.ok()) << snapshot.status();
  ApiTable apis;
  std::vector<lull::v1::StackDef> stacks;
  auto sink = [&](lull::v1::Batch* batch) {
    for (const auto& process : batch->stacks()) {
      const uint32_t* number = process.frame_numbers().data();
      for (int i = 0; i < process.stacks_size(); ++i) {
        stacks.push_back(process.stacks(i));
        for (uint32_t left = process.depths(i); left > 0; --left) {
          *stacks.back().add_frames() = process.frames(static_cast<int>(*number++));
        }
      }
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(TranslateSnapshot(*snapshot, 1, apis, sink, &counts_).ok());
  ASSERT_EQ(stacks.size(), 2u);
  EXPECT_FALSE(stacks[0].native());
  EXPECT_EQ(stacks[0].frames_size(), 2);
  EXPECT_EQ(stacks[0].frames(0).line(), 3);
  EXPECT_TRUE(stacks[1].native());
  ASSERT_EQ(stacks[1].frames_size(), 1);
  EXPECT_EQ(stacks[1].frames(0).function(), "at::_ops::empty::call(x)");
}

TEST_F(SnapshotTest, APickleOfSomethingElseIsNone) {
  for (const std::string& value :
       {std::string("N"), std::string("}"), std::string("K\x01"), List({"N"}),
        pickled::Dict({{"segments", "N"}}), pickled::Dict({{"segments", List({"}"})}}),
        pickled::Snapshot({Segment(4096, {"]"})}, {}), pickled::Snapshot({}, {"}"})}) {
    auto read = Read(Whole(value));
    EXPECT_EQ(read.status().code(), StatusCode::kInvalidArgument) << read.status();
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("no memory snapshot"));
  }
}

TEST_F(SnapshotTest, NumbersThatCannotBeAreCountedAndLeftOut) {
  const auto told = EventsOf(pickled::Snapshot(
      {},
      {Entry("alloc", 0, 100, kStart), Entry("alloc", -512, 100, kStart),
       Entry("alloc", 512, int64_t{1} << 41, kStart), Entry("alloc", 512, -1, kStart),
       Entry("dance", 512, 1, kStart), Entry("alloc", 512, 100, kStart)}));
  ASSERT_FALSE(told.empty());
  EXPECT_EQ(counts_.found.at("allocations"), 1u);
  auto far = Read(Whole(pickled::Snapshot(
      {}, {Entry("alloc", 512, 1, 5), Entry("alloc", 512, 1, kStart)})));
  ASSERT_TRUE(far.ok());
  ApiTable apis;
  auto sink = [](lull::v1::Batch*) { return absl::OkStatus(); };
  EXPECT_EQ(TranslateSnapshot(*far, 1, apis, sink, &counts_).code(),
            StatusCode::kDataLoss);
}

// A list of segments that names one segment a million times, which has one block a
// million times, is a small file.
TEST_F(SnapshotTest, ManyNamesOfOneThingAreCountedEachTime) {
  std::string blocks = "](" + Block(4096, 512, "active_allocated", 400) + "\x94";
  for (int i = 0; i < 20'000; ++i) blocks += std::string("h\x00", 2);
  blocks += "e";
  const std::string segment = "}(" + pickled::Text("device") + "K" +
                              std::string(1, '\0') + pickled::Text("address") +
                              pickled::Number(4096) + pickled::Text("blocks") + blocks +
                              "u\x94";
  std::string segments = "](" + segment;
  for (int i = 0; i < 20'000; ++i) segments += "h\x01";
  segments += "e";
  SnapshotLimits limits;
  limits.records = 1'000'000;
  EXPECT_EQ(Read(Whole(segments), limits).status().code(),
            StatusCode::kResourceExhausted);
  limits.records = SIZE_MAX;
  limits.bytes = 16 << 20;
  EXPECT_EQ(Read(Whole(segments), limits).status().code(),
            StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace lull::imports
