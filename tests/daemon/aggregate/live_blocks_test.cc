#include "daemon/aggregate/live_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "tests/daemon/units.h"

namespace lull::aggregate {
namespace {

constexpr uint64_t kAddress = 0x7f0000000000;

Series Kind(uint8_t variant) {
  Series series;
  series.type = EventType::kTorchMemory;
  series.variant = variant;
  return series;
}
const Series kAlloc = Kind(static_cast<uint8_t>(Allocator::kTorchCpu));
const Series kFree = Kind(static_cast<uint8_t>(Allocator::kTorchCpu) | kVariantFree);

Event At(uint64_t start_ns, uint32_t series, bool free, uint64_t bytes = 0) {
  Event event;
  event.start_ns = start_ns;
  event.series = series;
  MemoryView{event}.set_address(kAddress).set_bytes(bytes);
  if (free) event.flags = kFlagFree;
  return event;
}

bool NoneIsDrawn(uint32_t /*series*/) { return false; }

const Series kBefore =
    Kind(static_cast<uint8_t>(Allocator::kTorchCpu) | kVariantBefore);

// As kFlagBefore tells: no address, and all bytes.
Event Before(uint64_t start_ns, uint32_t series, uint64_t bytes) {
  Event event;
  event.start_ns = start_ns;
  event.series = series;
  MemoryView{event}.set_bytes(bytes);
  event.flags = kFlagBefore;
  return event;
}

TEST(LiveBlocks, SayWhoseBlockAFreeEnds) {
  LiveBlocks blocks;
  Event alloc = At(1, 7, false, 512);
  blocks.Apply(kAlloc, alloc);
  Event free = At(2, 8, true);
  blocks.Apply(kFree, free);
  EXPECT_EQ(free.released_series, 7u);
  EXPECT_EQ(free.released_bytes, 512u);
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(LiveBlocks, ReleaseNothingForABlockThatTheyNeverSaw) {
  LiveBlocks blocks;
  Event free = At(2, 8, true);
  blocks.Apply(kFree, free);
  EXPECT_EQ(free.released_series, 0u);
}

TEST(LiveBlocks, MatchAFreeThatComesInBeforeItsAllocation) {
  LiveBlocks blocks;
  Event free = At(20, 8, true);
  blocks.Apply(kFree, free);
  Event alloc = At(10, 7, false, 64);
  blocks.Apply(kAlloc, alloc);
  EXPECT_TRUE(alloc.flags & kFlagFreedEarlier);
  EXPECT_EQ(alloc.released_series, 0u);
  EXPECT_EQ(alloc.released_bytes, 10u) << "nanoseconds from one to the other";
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(LiveBlocks, MatchSeveralFreesOfOneAddressWithTheAllocationsThatComeLater) {
  LiveBlocks blocks;
  for (uint64_t at : {20, 40}) {
    Event free = At(at, 8, true);
    blocks.Apply(kFree, free);
  }
  for (uint64_t at : {15, 30}) {
    Event alloc = At(at, 7, false, 64);
    blocks.Apply(kAlloc, alloc);
    EXPECT_TRUE(alloc.flags & kFlagFreedEarlier) << at;
    EXPECT_EQ(alloc.released_bytes, at == 15 ? 5u : 10u);
  }
  Event last = At(50, 7, false, 64);
  blocks.Apply(kAlloc, last);
  EXPECT_FALSE(last.flags & kFlagFreedEarlier);
  EXPECT_EQ(blocks.size(), 1u);
}

TEST(LiveBlocks, KeepABlockThatIsYoungerThanAnUnmatchedFree) {
  LiveBlocks blocks;
  Event free = At(10, 8, true);
  blocks.Apply(kFree, free);
  Event alloc = At(20, 7, false, 64);
  blocks.Apply(kAlloc, alloc);
  EXPECT_FALSE(alloc.flags & kFlagFreedEarlier);
  EXPECT_EQ(blocks.size(), 1u);
}

TEST(LiveBlocks, ForgetAnUnmatchedFreeAfterAWhile) {
  LiveBlocks blocks;
  Event free = At(60 * kSecond, 8, true);
  blocks.Apply(kFree, free);
  Event alloc = At(10 * kSecond, 7, false, 64);
  blocks.Apply(kAlloc, alloc);
  EXPECT_FALSE(alloc.flags & kFlagFreedEarlier);
}

TEST(LiveBlocks, EndABlockWhoseFreeWasLostWhenItsAddressComesBack) {
  LiveBlocks blocks;
  Event first = At(1, 7, false, 100);
  blocks.Apply(kAlloc, first);
  Event second = At(5, 9, false, 30);
  blocks.Apply(kAlloc, second);
  EXPECT_EQ(second.released_series, 7u);
  EXPECT_EQ(second.released_bytes, 100u);
  // The free of the first, late from another ring, must not end the second.
  Event late = At(3, 8, true);
  blocks.Apply(kFree, late);
  EXPECT_EQ(late.released_series, 0u);
  EXPECT_EQ(blocks.size(), 1u);
}

TEST(LiveBlocks, IgnoreCallsThatFailed) {
  LiveBlocks blocks;
  Event alloc = At(1, 7, false, 100);
  blocks.Apply(Kind(kVariantFailed), alloc);
  EXPECT_EQ(blocks.size(), 0u);
}

TEST(LiveBlocks, TellTheStoreOnlyWhatChangedForIt) {
  LiveBlocks blocks;
  Event alloc = At(1, 7, false, 100);
  blocks.Apply(kAlloc, alloc);
  Event free = At(2, 8, true);
  blocks.Apply(kFree, free);
  EXPECT_TRUE(blocks.TakeChanges().empty()) << "came and went between two commits";

  Event again = At(3, 7, false, 100);
  blocks.Apply(kAlloc, again);
  auto changes = blocks.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_TRUE(changes[0].live);
  EXPECT_EQ(changes[0].block.bytes, 100u);

  Event end = At(4, 8, true);
  blocks.Apply(kFree, end);
  changes = blocks.TakeChanges();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_FALSE(changes[0].live);
}

TEST(LiveBlocks, TakeFreesOfUnknownBlocksFromWhatWasThereBefore) {
  LiveBlocks blocks;
  Event before = Before(1, 7, 1000);
  blocks.Apply(kBefore, before);
  Event free = At(20, 8, true, 300);
  blocks.Apply(kFree, free);
  EXPECT_EQ(free.released_series, 7u);
  EXPECT_EQ(free.released_bytes, 300u);
  Event untold = At(21, 8, true);
  blocks.Apply(kFree, untold);
  EXPECT_EQ(untold.released_series, 0u) << "its size is not known";
  Event too_much = At(22, 8, true, 701);
  blocks.Apply(kFree, too_much);
  EXPECT_EQ(too_much.released_series, 0u) << "cannot have been among them";
  Event rest = At(23, 8, true, 700);
  blocks.Apply(kFree, rest);
  EXPECT_EQ(rest.released_bytes, 700u);
}

TEST(LiveBlocks, GiveBackWhatAFreeHadTakenInError) {
  LiveBlocks blocks;
  Event before = Before(1, 7, 1000);
  blocks.Apply(kBefore, before);
  Event free = At(20, 8, true, 64);
  blocks.Apply(kFree, free);
  EXPECT_EQ(free.released_series, 7u);
  Event alloc = At(10, 9, false, 64);
  blocks.Apply(kAlloc, alloc);
  EXPECT_TRUE(alloc.flags & kFlagFreedEarlier);
  EXPECT_EQ(alloc.released_series, 7u);
  Event all = At(30, 8, true, 1000);
  blocks.Apply(kFree, all);
  EXPECT_EQ(all.released_bytes, 1000u);
}

using Forgets = LiveBlocks::Forgets;

TEST(LiveBlocks, ForgetTensorsAloneAfterAControlStep) {
  LiveBlocks blocks;
  blocks.Restore({static_cast<uint8_t>(Allocator::kCuda), 0x1000}, {1, 64, 5});
  blocks.Restore({static_cast<uint8_t>(Allocator::kPinned), 0x2000}, {2, 64, 5});
  blocks.Restore({static_cast<uint8_t>(Allocator::kTorchCuda), 0x3000}, {3, 64, 5});
  blocks.Restore({static_cast<uint8_t>(Allocator::kTorchCuda) | kBeforeBit, 0},
                 {4, 9, 5});
  EXPECT_EQ(blocks.Forget(10, Forgets::kTensors, NoneIsDrawn).size(), 2u);
  EXPECT_EQ(blocks.size(), 2u);
}

TEST(LiveBlocks, ForgetWhatIsOlderThanAMoment) {
  LiveBlocks blocks;
  Event before = Before(1, 7, 1000);
  blocks.Apply(kBefore, before);
  Event old = At(5, 9, false, 64);
  blocks.Apply(kAlloc, old);
  Event young = At(20, 9, false, 32);
  MemoryView{young}.set_address(0x2000);
  blocks.Apply(kAlloc, young);
  (void)blocks.TakeChanges();

  std::vector<Event> forgotten = blocks.Forget(10, Forgets::kAll, NoneIsDrawn);
  std::sort(forgotten.begin(), forgotten.end(), [](const Event& a, const Event& b) {
    return a.released_series < b.released_series;
  });
  ASSERT_EQ(forgotten.size(), 2u);
  EXPECT_EQ(forgotten[0].released_series, 7u);
  EXPECT_EQ(forgotten[0].released_bytes, 1000u);
  EXPECT_EQ(ForgottenView{forgotten[0]}.blocks(), 0u) << "no block that we know";
  EXPECT_EQ(forgotten[1].released_series, 9u);
  EXPECT_EQ(forgotten[1].released_bytes, 64u);
  EXPECT_EQ(ForgottenView{forgotten[1]}.blocks(), 1u);
  EXPECT_EQ(forgotten[1].start_ns, 10u);
  EXPECT_EQ(blocks.size(), 1u);
  EXPECT_EQ(blocks.TakeChanges().size(), 2u) << "for the store to forget";
  EXPECT_TRUE(blocks.Forget(10, Forgets::kAll, NoneIsDrawn).empty());
}

TEST(LiveBlocks, ForgetDrawnOnesBySizeForTheSizeIsTheirWeight) {
  LiveBlocks blocks;
  for (uint64_t i = 0; i < 6; ++i) {
    Event event = At(5, i < 4 ? 9 : 10, false, i % 2 == 0 ? 512 : 1024);
    MemoryView{event}.set_address(0x1000 + i);
    blocks.Apply(kAlloc, event);
  }
  std::vector<std::vector<uint64_t>> sums;
  for (const Event& event :
       blocks.Forget(10, Forgets::kAll, [](uint32_t series) { return series == 9; })) {
    sums.push_back(
        {event.released_series, event.released_bytes, ForgottenView{event}.blocks()});
  }
  std::sort(sums.begin(), sums.end());
  EXPECT_EQ(sums, (std::vector<std::vector<uint64_t>>{
                      {9, 1024, 2}, {9, 2048, 2}, {10, 1536, 2}}));
}

}  // namespace
}  // namespace lull::aggregate
