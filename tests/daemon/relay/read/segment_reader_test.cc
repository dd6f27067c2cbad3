#include "daemon/relay/read/segment_reader.h"

#include <gtest/gtest.h>
#include <string.h>

#include <atomic>
#include <thread>
#include <vector>

#include "daemon/relay/read/resolver.h"
#include "daemon/relay/symbols/line_table.h"
#include "tests/daemon/relay/fake_segment.h"

namespace lull::relay {
namespace {

abi::StackEntry* StackAt(FakeSegment* segment, abi::Ref ref) {
  return reinterpret_cast<abi::StackEntry*>(segment->view().entry(ref));
}

abi::CodeEntry* CodeAt(FakeSegment* segment, abi::Ref ref) {
  return reinterpret_cast<abi::CodeEntry*>(segment->view().entry(ref));
}

TEST(SegmentReader, CopiesEventsAcrossTheEndsOfChunks) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  uint64_t next = 0;
  std::vector<abi::Event> events(abi::kRingEvents);
  for (uint64_t i = 0; i < 3 * abi::kRingEvents; ++i) {
    ASSERT_TRUE(segment.Commit(5, MakeEvent(abi::EventType::kLaunch, i)));
    if (i % 1000 != 999) continue;
    uint64_t head = *reader.CommittedHead(5, next);
    ASSERT_TRUE(
        reader.CopyEvents(5, next, static_cast<uint32_t>(head - next), events.data()));
    for (uint64_t k = next; k < head; ++k) ASSERT_EQ(events[k - next].arg0, k);
    next = head;
    reader.Release(5, next);
  }
}

TEST(SegmentReader, SeesOnlyWholeEventsOfAWriterOnAnotherThread) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  constexpr uint64_t kEvents = 300'000;
  std::thread writer([&] {
    for (uint64_t i = 0; i < kEvents;) {
      abi::Event event = MakeEvent(abi::EventType::kLaunch, i, i);
      event.arg1 = event.duration_ns = i;
      if (segment.Commit(0, event)) ++i;
    }
  });
  std::vector<abi::Event> events(abi::kRingEvents);
  for (uint64_t next = 0; next < kEvents;) {
    uint64_t head = *reader.CommittedHead(0, next);
    ASSERT_TRUE(
        reader.CopyEvents(0, next, static_cast<uint32_t>(head - next), events.data()));
    for (uint64_t k = next; k < head; ++k) {
      const abi::Event& event = events[k - next];
      ASSERT_TRUE(event.arg0 == k && event.arg1 == k && event.duration_ns == k &&
                  event.start_ns == k);
    }
    next = head;
    reader.Release(0, next);
  }
  writer.join();
}

TEST(SegmentReader, KnowsAChunkThatIsNone) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  ASSERT_TRUE(segment.Commit(0, MakeEvent(abi::EventType::kLaunch, 1)));
  abi::Event event;
  EXPECT_TRUE(reader.CopyEvents(0, 0, 1, &event));
  segment.view().table(0)[0] = abi::kPoolChunks;
  EXPECT_FALSE(reader.CopyEvents(0, 0, 1, &event));
}

TEST(SegmentReader, BelievesInNoMoreRingsThanThereAre) {
  FakeSegment segment;
  segment.view().header().rings_used = ~0u;
  EXPECT_EQ(SegmentReader(segment.base()).RingsUsed(), abi::kMaxRings);
}

TEST(SegmentReader, FreesARingOnlyForTheOwnerItIsToldOf) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  segment.view().owner(3) = abi::owner_word(8, 77);
  EXPECT_FALSE(reader.FreeRing(3, abi::owner_word(7, 77)));
  EXPECT_EQ(reader.Owner(3), abi::owner_word(8, 77));
  EXPECT_TRUE(reader.FreeRing(3, abi::owner_word(8, 77)));
  EXPECT_EQ(reader.Owner(3), abi::kFreeRing);
}

TEST(SegmentReader, KnowsAnImpossibleHead) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  segment.view().ring(0).head = abi::kRingEvents;
  EXPECT_TRUE(reader.CommittedHead(0, 0).has_value());
  segment.view().ring(0).head = abi::kRingEvents + 1;
  EXPECT_FALSE(reader.CommittedHead(0, 0).has_value()) << "more than the ring holds";
  EXPECT_FALSE(reader.CommittedHead(0, abi::kRingEvents + 2).has_value())
      << "backwards";
  segment.view().ring(0).head = ~uint64_t{0};
  EXPECT_FALSE(reader.CommittedHead(0, 0).has_value());
}

TEST(SegmentReader, ReadsStacksAndCode) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  abi::Ref code = segment.AddCode("a.py", "f", 7, 12, "table");
  abi::Ref stack = segment.AddPythonStack({{code, 42}, {code, -1}});
  auto raw = reader.Stack(stack);
  ASSERT_TRUE(raw.has_value());
  EXPECT_FALSE(raw->native);
  ASSERT_EQ(raw->depth, 2u);
  EXPECT_EQ(raw->python[0].code, code);
  EXPECT_EQ(raw->python[0].lasti, 42);
  auto object = reader.Code(code);
  ASSERT_TRUE(object.has_value());
  EXPECT_EQ(object->filename, "a.py");
  EXPECT_EQ(object->name, "f");
  EXPECT_EQ(object->linetable, "table");
  EXPECT_EQ(object->first_line, 7);
  EXPECT_EQ(object->python_minor, 12);
}

TEST(SegmentReader, RejectsReferencesThatLeadNowhere) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  abi::Ref stack = segment.AddNativeStack({1, 2, 3});
  ASSERT_TRUE(reader.Stack(stack).has_value());
  EXPECT_FALSE(reader.Stack(0).has_value());
  EXPECT_FALSE(reader.Code(stack).has_value()) << "another kind";
  EXPECT_FALSE(reader.Stack(stack + 1).has_value()) << "the middle of an entry";
  EXPECT_FALSE(reader.Stack(0xffffffff).has_value());
  uint32_t used = segment.view().header().arena_used;
  EXPECT_FALSE(reader.Stack(used / 16).has_value()) << "beyond what is used";
  segment.view().header().arena_used = 0xffffffff;
  EXPECT_FALSE(reader.Stack(abi::kArenaSize / 16).has_value());
  EXPECT_FALSE(reader.Stack(abi::kArenaSize / 16 - 1).has_value());
}

TEST(SegmentReader, RejectsSizesThatDoNotFit) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  abi::Ref stack = segment.AddNativeStack({1, 2, 3});
  StackAt(&segment, stack)->depth = 4;
  EXPECT_FALSE(reader.Stack(stack).has_value()) << "deeper than the entry";
  StackAt(&segment, stack)->depth = 3;
  StackAt(&segment, stack)->header.size = 0x7fffffff;
  EXPECT_FALSE(reader.Stack(stack).has_value()) << "larger than the arena";
  StackAt(&segment, stack)->header.size = 8;
  EXPECT_FALSE(reader.Stack(stack).has_value()) << "smaller than its header";

  abi::Ref deep = segment.AddNativeStack(std::vector<uint64_t>(129, 1));
  EXPECT_FALSE(reader.Stack(deep).has_value()) << "deeper than the ABI allows";
  abi::Ref deepest = segment.AddNativeStack(std::vector<uint64_t>(128, 1));
  EXPECT_TRUE(reader.Stack(deepest).has_value());

  abi::Ref code = segment.AddCode("file", "name", 1);
  CodeAt(&segment, code)->linetable_size = 0xfffffff0;
  EXPECT_FALSE(reader.Code(code).has_value());
  CodeAt(&segment, code)->linetable_size = 0;
  ASSERT_TRUE(reader.Code(code).has_value());
  EXPECT_EQ(reader.Code(code)->linetable, "");
  CodeAt(&segment, code)->linetable_left_out = 1;
  EXPECT_EQ(reader.Code(code)->linetable, std::nullopt);
  CodeAt(&segment, code)->filename_size = 5;
  EXPECT_FALSE(reader.Code(code).has_value());
}

TEST(ResolveStack, DoesNotFollowCodeThatIsNone) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  PythonCodes codes;
  abi::Ref native = segment.AddNativeStack({1});
  abi::Ref stack = segment.AddPythonStack({{native, 0}});
  EXPECT_FALSE(ResolveStack(reader, stack, &codes).has_value());
}

TEST(ResolveStack, MakesForeignTextFitForTheWire) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  PythonCodes codes;
  abi::Ref code = segment.AddCode("bad\xff.py", std::string(9000, 'n'), 1);
  auto stack = ResolveStack(reader, segment.AddPythonStack({{code, 0}}), &codes);
  ASSERT_TRUE(stack.has_value());
  EXPECT_EQ(stack->frames(0).file(), "bad\xef\xbf\xbd.py");
  EXPECT_EQ(stack->frames(0).function().size(), 4096u);
  EXPECT_EQ(stack->frames(0).line(), 0);
}

TEST(PythonCodes, SaysTheSameOfACodeObjectAgainAndAgain) {
  FakeSegment segment;
  SegmentReader reader(segment.base());
  PythonCodes codes;
  const abi::Ref first = segment.AddCode("a.py", "one", 7);
  const abi::Ref second = segment.AddCode("b.py", "two", 9);
  for (int i = 0; i < 3; ++i) {
    for (int32_t lasti : {-1, 0, 2, -1}) {
      PythonCodes::Code* code = codes.Find(reader, first);
      ASSERT_NE(code, nullptr);
      EXPECT_EQ(code->function(), "one");
      EXPECT_EQ(code->file(), "a.py");
      const RawCode raw = *reader.Code(first);
      EXPECT_EQ(code->Line(lasti), LineOfInstruction(raw.python_minor, raw.first_line,
                                                     raw.linetable, lasti));
    }
    ASSERT_NE(codes.Find(reader, second), nullptr);
    EXPECT_EQ(codes.Find(reader, second)->function(), "two");
  }
  EXPECT_EQ(codes.Find(reader, segment.AddNativeStack({1})), nullptr);
}

}  // namespace
}  // namespace lull::relay
