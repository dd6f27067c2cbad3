// One writer against a model of the ring: abi/ring.h in twenty lines.
#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <thread>

#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

// Writes one event that says `number`; false if it was dropped.
bool write(char* segment, uint64_t number) {
  abi::Event* event = reserve_event(segment);
  if (event == nullptr) return false;
  *event = {};
  event->type = abi::EventType::kLaunch;
  event->arg0 = number;
  event->start_ns = ~number;
  commit_event();
  return true;
}

// Takes up to `most` events out, as the relay does.
std::vector<uint64_t> read(abi::SegmentView view, uint32_t ring, uint64_t most) {
  std::vector<uint64_t> numbers;
  abi::RingHeader& header = view.ring(ring);
  uint64_t head = header.head.load(std::memory_order_acquire);
  uint64_t tail = header.tail.load(std::memory_order_relaxed);
  for (; tail < head && most > 0; ++tail, --most) {
    abi::Event event = view.slots(ring)[tail % abi::kRingSlots];
    EXPECT_EQ(event.start_ns, ~event.arg0);
    numbers.push_back(event.arg0);
  }
  header.tail.store(tail, std::memory_order_release);
  return numbers;
}

TEST(RingWriter, BeginsARingWithTheThreadThatTookIt) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 7));
  std::vector<abi::Event> events = segment.unread(0);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].type, abi::EventType::kThreadStart);
  EXPECT_EQ(events[0].arg0, static_cast<uint64_t>(gettid()));
  EXPECT_EQ(events[1].arg0, 7u);
  EXPECT_EQ(segment.view().ring(0).tid, static_cast<uint32_t>(gettid()));
}

TEST(RingWriter, AgreesWithAModelOverManyWrapArounds) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 0));
  segment.view().ring(0).tail = 2;  // kThreadStart has its own test
  std::deque<uint64_t> model;
  uint64_t attempts = 2, lost = 0;
  std::mt19937_64 random(20240607);
  for (int step = 0; step < 2000; ++step) {
    uint64_t count = random() % 700;
    if (random() % 2 == 0) {
      for (uint64_t i = 0; i < count; ++i) {
        bool fits = model.size() < abi::kRingSlots;
        ASSERT_EQ(write(segment.base(), attempts), fits);
        fits ? model.push_back(attempts) : void(++lost);
        ++attempts;
      }
    } else {
      for (uint64_t number : read(segment.view(), 0, count)) {
        ASSERT_FALSE(model.empty());
        ASSERT_EQ(number, model.front());
        model.pop_front();
      }
    }
    const abi::RingHeader& ring = segment.view().ring(0);
    ASSERT_EQ(ring.lost, lost);
    ASSERT_EQ(ring.head + ring.lost, attempts);
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(segment.view().ring(0).head, 20u * abi::kRingSlots);
}

TEST(RingWriter, DropsTheNewestWhenFullAndGoesOnWhenThereIsRoom) {
  TestSegment segment;
  for (uint64_t i = 0; i < abi::kRingSlots - 1; ++i)
    ASSERT_TRUE(write(segment.base(), i));
  EXPECT_FALSE(write(segment.base(), 1000000));
  EXPECT_FALSE(write(segment.base(), 1000001));
  EXPECT_EQ(segment.view().ring(0).lost, 2u);
  EXPECT_EQ(segment.unread(0).back().arg0, abi::kRingSlots - 2);
  segment.view().ring(0).tail.store(1, std::memory_order_release);
  EXPECT_TRUE(write(segment.base(), 1000002));
  EXPECT_FALSE(write(segment.base(), 1000003));
  EXPECT_EQ(segment.unread(0).back().arg0, 1000002u);
}

TEST(RingWriter, NeverBelievesATailBeyondItsHead) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 1));
  segment.view().ring(0).tail = 1u << 20;
  for (uint64_t i = 0; i < 2 * abi::kRingSlots; ++i) write(segment.base(), i);
  const abi::RingHeader& ring = segment.view().ring(0);
  EXPECT_EQ(ring.head + ring.lost, 2 * abi::kRingSlots + 2u);
  EXPECT_GT(ring.lost, 0u);
}

TEST(RingWriter, TakesNoRingThatHasNoRoomToSayWhoseItIs) {
  TestSegment segment;
  segment.view().ring(0).head = abi::kRingSlots;
  ASSERT_TRUE(write(segment.base(), 1));
  EXPECT_EQ(segment.view().ring(0).state, abi::RingState::kFree);
  EXPECT_EQ(segment.unread(1).size(), 2u);
}

TEST(RingWriter, CountsEventsOfThreadsThatFindNoRing) {
  TestSegment segment;
  for (uint32_t i = 0; i < abi::kMaxRings; ++i) {
    segment.view().ring(i).state = abi::RingState::kOwned;
  }
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(write(segment.base(), i));
  EXPECT_EQ(segment.view().header().lost_no_ring, 3u);
  segment.view().ring(5).state = abi::RingState::kFree;
  EXPECT_TRUE(write(segment.base(), 3));
  EXPECT_EQ(segment.unread(5).size(), 2u);
}

TEST(RingWriter, GoesOnInTheRingOfAThreadThatEnded) {
  TestSegment segment;
  for (uint64_t round = 0; round < 3; ++round) {
    std::thread([&] { write(segment.base(), round); }).join();
    EXPECT_EQ(segment.view().ring(0).state, abi::RingState::kFree);
  }
  std::vector<abi::Event> events = segment.unread(0);
  ASSERT_EQ(events.size(), 6u);
  for (uint64_t round = 0; round < 3; ++round) {
    EXPECT_EQ(events[2 * round].type, abi::EventType::kThreadStart);
    EXPECT_EQ(events[2 * round + 1].arg0, round);
  }
}

TEST(RingWriter, LeavesTheRingOfAnOlderSegmentAlone) {
  TestSegment first;
  ASSERT_TRUE(write(first.base(), 1));
  TestSegment second;
  ASSERT_TRUE(write(second.base(), 2));
  EXPECT_EQ(first.view().ring(0).head, 2u);
  EXPECT_EQ(second.view().ring(0).head, 2u);
}

}  // namespace
}  // namespace lull
