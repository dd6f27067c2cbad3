// One writer against a model of the ring: abi/ring.h in twenty lines.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <deque>
#include <random>
#include <thread>

#include "preload/hooks/record.h"
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
    abi::Event event = view.slot(ring, tail);
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
  EXPECT_EQ(abi::tid_of(segment.view().owner(0)), static_cast<uint32_t>(gettid()));
}

// As in a fork child: until its first event a thread has the ring that its parent
// writes.
TEST(RingWriter, AccountsNoTimeToTheRingOfAnotherGeneration) {
  TestSegment of_parent;
  ASSERT_TRUE(write(of_parent.base(), 7));
  account_self(monotonic_ns());
  const uint64_t before = of_parent.view().ring(0).self_ns.load();
  EXPECT_GT(before, 0u);
  {
    TestSegment of_child;
    account_self(monotonic_ns());
    for (uint32_t i = 0; i < 2 * kSelfSamplePeriod; ++i) {
      account_self_sampled(monotonic_ns());
    }
    EXPECT_EQ(of_parent.view().ring(0).self_ns.load(), before);
  }
  account_self(monotonic_ns());
  EXPECT_GT(of_parent.view().ring(0).self_ns.load(), before);
}

TEST(RingWriter, AForkChildDoesNotDrawTheBlocksThatItsParentDraws) {
  TestSegment of_parent;
  ASSERT_TRUE(write(of_parent.base(), 7));
  t_thread.drawn.seed(1);
  ASSERT_TRUE(write(of_parent.base(), 8));
  EXPECT_TRUE(t_thread.drawn.is_seeded());
  TestSegment of_child;
  ASSERT_TRUE(write(of_child.base(), 9));
  EXPECT_FALSE(t_thread.drawn.is_seeded()) << "a seed of its own comes next";
}

// Room as abi/ring.h promises it: what is unread, rounded to the chunks that hold it,
// and the chunk of the head.
uint64_t chunks_of(uint64_t tail, uint64_t head) {
  return head == tail ? 0
                      : (head - 1) / abi::kChunkEvents - tail / abi::kChunkEvents + 1;
}

TEST(RingWriter, AgreesWithAModelOverManyRounds) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 0));
  segment.view().ring(0).tail = 2;  // kThreadStart has its own test
  std::deque<uint64_t> model;
  uint64_t attempts = 2, lost = 0, head = 2, tail = 2;
  std::mt19937_64 random(20240607);
  for (int step = 0; step < 3000; ++step) {
    uint64_t count = random() % (step % 100 == 0 ? 200'000 : 2'000);
    if (random() % 2 == 0) {
      for (uint64_t i = 0; i < count; ++i) {
        bool fits = chunks_of(tail, head + 1) <= abi::kRingChunks;
        ASSERT_EQ(write(segment.base(), attempts), fits);
        fits ? (model.push_back(attempts), ++head) : ++lost;
        ++attempts;
      }
    } else {
      for (uint64_t number : read(segment.view(), 0, count)) {
        ASSERT_FALSE(model.empty());
        ASSERT_EQ(number, model.front());
        model.pop_front();
        ++tail;
      }
    }
    const abi::RingHeader& ring = segment.view().ring(0);
    ASSERT_EQ(ring.lost, lost);
    ASSERT_EQ(ring.head, head);
    ASSERT_EQ(ring.head + ring.lost, attempts);
  }
  EXPECT_GT(lost, 0u);
  EXPECT_GT(head, 10u * abi::kRingEvents);
  EXPECT_EQ(segment.view().header().chunks_used, abi::kRingChunks);
}

TEST(RingWriter, AQuietThreadHasOneOrTwoChunks) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 0));
  segment.view().ring(0).tail = 1;
  for (uint64_t i = 1; i < 100 * abi::kChunkEvents; ++i) {
    ASSERT_TRUE(write(segment.base(), i));
    if (i % 100 == 99) read(segment.view(), 0, UINT64_MAX);
  }
  EXPECT_EQ(segment.view().header().chunks_used, 2u);
}

TEST(RingWriter, DropsTheNewestWhenFullAndGoesOnWhenAChunkWasRead) {
  TestSegment segment;
  for (uint64_t i = 0; i < abi::kRingEvents - 1; ++i)
    ASSERT_TRUE(write(segment.base(), i));
  EXPECT_FALSE(write(segment.base(), 1000000));
  EXPECT_FALSE(write(segment.base(), 1000001));
  EXPECT_EQ(segment.view().ring(0).lost, 2u);
  EXPECT_EQ(segment.unread(0).back().arg0, abi::kRingEvents - 2);
  segment.view().ring(0).tail.store(abi::kChunkEvents - 1, std::memory_order_release);
  EXPECT_FALSE(write(segment.base(), 1000002)) << "one of the chunk is unread";
  segment.view().ring(0).tail.store(abi::kChunkEvents, std::memory_order_release);
  EXPECT_TRUE(write(segment.base(), 1000003));
  EXPECT_EQ(segment.unread(0).back().arg0, 1000003u);
}

// As if so much time had passed since this thread last looked for its relay.
void let_pass(uint64_t seconds) { t_thread.looked_ns -= seconds * 1'000'000'000; }

void fill_chunk(const TestSegment& segment) {
  for (uint64_t i = 0; i < abi::kChunkEvents; ++i) write(segment.base(), i);
}

TEST(RingWriter, FallsAsleepWhereNobodyHasReadForAMinute) {
  for (bool full : {false, true}) {
    TestSegment segment;
    while (full && write(segment.base(), 0)) {
    }
    int seconds = 0;
    for (; segment.view().control().armed != 0; seconds += 8) {
      ASSERT_LT(seconds, 100);
      fill_chunk(segment);
      let_pass(8);
    }
    EXPECT_GE(seconds, 60);
    EXPECT_EQ(segment.view().header().ended,
              static_cast<uint32_t>(abi::EndedBy::kUnread));
    EXPECT_NE(segment.view().control().asleep_since_ns, 0u);
  }
}

TEST(RingWriter, StaysAwakeWhereSomebodyReadsNowAndThen) {
  TestSegment segment;
  for (int i = 0; i < 100; ++i) {
    fill_chunk(segment);
    if (i % 8 == 0) segment.view().ring(0).tail.fetch_add(1);
    let_pass(8);
  }
  EXPECT_EQ(segment.view().control().armed, 1u);
}

// A job that was stopped together with its relay goes on before that does.
TEST(RingWriter, StaysAwakeAfterAPauseOfAnyLength) {
  TestSegment segment;
  fill_chunk(segment);
  let_pass(100'000);
  for (int i = 0; i < 100; ++i) fill_chunk(segment);
  EXPECT_EQ(segment.view().control().armed, 1u);
}

TEST(RingWriter, ThatNobodyReadsHidesNoOtherReason) {
  TestSegment segment;
  end_recording(segment.base(), abi::EndedBy::kUnread);
  end_recording(segment.base(), abi::EndedBy::kFilter);
  end_recording(segment.base(), abi::EndedBy::kUnread);
  EXPECT_EQ(segment.view().header().ended,
            static_cast<uint32_t>(abi::EndedBy::kFilter));
}

TEST(RingWriter, NeverBelievesATailBeyondItsHead) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 1));
  segment.view().ring(0).tail = 1u << 30;
  for (uint64_t i = 0; i < 2 * abi::kRingEvents; ++i) write(segment.base(), i);
  const abi::RingHeader& ring = segment.view().ring(0);
  EXPECT_EQ(ring.head + ring.lost, 2 * abi::kRingEvents + 2u);
  EXPECT_LE(segment.view().header().chunks_used, 2u) << "its own memory, over and over";
}

// The guard lets nobody in between reserve and commit. If somebody came all the same,
// an event is wrong, and the memory of the program is not.
TEST(RingWriter, NeverWritesBeyondItsChunkWhoeverComesInBetween) {
  TestSegment segment;
  ASSERT_TRUE(write(segment.base(), 0));
  while (t_thread.next + 1 != t_thread.end) ASSERT_TRUE(write(segment.base(), 1));
  ASSERT_NE(reserve_event(segment.base()), nullptr);
  ASSERT_TRUE(write(segment.base(), 2));
  commit_event();
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(write(segment.base(), 3));
    EXPECT_LE(t_thread.next, t_thread.end);
  }
}

TEST(RingWriter, CountsEventsOfThreadsThatFindNoRing) {
  TestSegment segment;
  for (uint32_t i = 0; i < abi::kMaxRings; ++i) {
    segment.view().owner(i) = abi::owner_word(1, 1);
  }
  segment.view().header().rings_used = abi::kMaxRings;
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(write(segment.base(), i));
  EXPECT_EQ(segment.view().header().lost_no_ring, 3u);
  segment.free_ring(5);
  uint64_t attempts = 3;
  while (!write(segment.base(), attempts)) ASSERT_LT(++attempts, 100u);
  EXPECT_EQ(segment.unread(5).size(), 2u);
  EXPECT_EQ(segment.view().header().lost_no_ring, attempts);
}

TEST(RingWriter, BusyThreadsLeaveAChunkToEachThreadThatIsStillToCome) {
  TestSegment segment;
  for (int busy = 0; busy < 3; ++busy) {
    std::thread([&] {
      for (uint64_t i = 0; i < 2 * abi::kRingEvents; ++i) write(segment.base(), i);
    }).join();
  }
  uint32_t used = segment.view().header().chunks_used;
  // The third came when the others had all that was theirs, and got one.
  EXPECT_EQ(used, abi::kPoolChunks - abi::kFirstChunks + 1);
  for (uint32_t i = 1; i < abi::kFirstChunks; ++i) {
    std::thread([&] { ASSERT_TRUE(write(segment.base(), 1)); }).join();
  }
  std::thread([&] { EXPECT_FALSE(write(segment.base(), 1)); }).join();
  EXPECT_EQ(segment.view().header().lost_no_ring, 1u);
}

TEST(RingWriter, GoesOnInTheRingThatWasGivenBack) {
  TestSegment segment;
  for (uint64_t round = 0; round < 3; ++round) {
    std::thread([&] { write(segment.base(), round); }).join();
    segment.free_ring(0);
  }
  std::vector<abi::Event> events = segment.unread(0);
  ASSERT_EQ(events.size(), 6u);
  for (uint64_t round = 0; round < 3; ++round) {
    EXPECT_EQ(events[2 * round].type, abi::EventType::kThreadStart);
    EXPECT_EQ(events[2 * round + 1].arg0, round);
  }
  EXPECT_EQ(segment.view().header().chunks_used, 1u);
  EXPECT_EQ(segment.view().header().rings_taken, 3u);
}

TEST(RingWriter, AdoptsAChunkThatIsExactlyFull) {
  TestSegment segment;
  std::thread([&] {
    for (uint64_t i = 0; i < abi::kChunkEvents - 1; ++i) write(segment.base(), i);
  }).join();
  segment.free_ring(0);
  std::thread([&] { write(segment.base(), 1234); }).join();
  std::vector<abi::Event> events = segment.unread(0);
  ASSERT_EQ(events.size(), abi::kChunkEvents + 2);
  EXPECT_EQ(events[abi::kChunkEvents].type, abi::EventType::kThreadStart);
  EXPECT_EQ(events.back().arg0, 1234u);
  EXPECT_EQ(segment.view().header().chunks_used, 2u);
}

// The page of a segment that the system has no memory for. A file that ends there is
// what the kernel answers like that for anybody: SIGBUS at the touch, EFAULT in a call.
class ShortSegment {
 public:
  explicit ShortSegment(TestSegment* segment, size_t there) {
    int file = memfd_create("short", 0);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(there)), 0);
    void* base = mmap(segment->base(), abi::kSegmentSize, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, file, 0);
    EXPECT_EQ(base, segment->base());
    close(file);
    segment->view().control().armed = 1;
  }
};

TEST(RingWriter, WithoutMemoryForARingItGoesToSleepForGood) {
  for (size_t there :
       {abi::kOwnersOffset, abi::kRingsOffset, abi::kTablesOffset, abi::kPoolOffset}) {
    TestSegment segment;
    ShortSegment cut(&segment, there);
    std::thread([&] { EXPECT_FALSE(write(segment.base(), 1)); }).join();
    EXPECT_EQ(segment.view().header().ended, 1u);
    EXPECT_EQ(segment.view().control().armed, 0u);
    EXPECT_EQ(recording_segment(), nullptr);
    EXPECT_EQ(segment.view().header().lost_no_ring, 1u);
  }
}

TEST(RingWriter, WithoutMemoryForAnotherChunkItKeepsWhatItHas) {
  TestSegment segment;
  ShortSegment cut(&segment, abi::kPoolOffset + 3 * abi::kChunkBytes);
  uint64_t written = 0;
  while (write(segment.base(), written)) ASSERT_LT(++written, 1000u);
  EXPECT_EQ(written + 1, 3 * abi::kChunkEvents);
  EXPECT_EQ(segment.view().ring(0).lost, 1u);
  EXPECT_EQ(segment.view().header().ended, 1u);
  EXPECT_EQ(segment.unread(0).size(), 3 * abi::kChunkEvents);
}

TEST(RingWriter, TakesARingWithoutTheHeapAndTheLoader) {
  // A thread whose own exit, in the middle of the loader, begins with its first event:
  // nothing of what a ring needs may wait for another thread.
  TestSegment segment;
  static char* base;
  base = segment.base();
  pthread_key_t key;
  pthread_key_create(&key, [](void*) { write(base, 99); });
  std::thread([&] { pthread_setspecific(key, &key); }).join();
  pthread_key_delete(key);
  std::vector<abi::Event> events = segment.unread(0);
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[1].arg0, 99u);
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
