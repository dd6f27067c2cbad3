// Many threads, one reader at the same time. Meant for TSan as well.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <thread>

#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

constexpr int kWaves = 40;
constexpr int kThreadsPerWave = 12;
constexpr uint64_t kEventsPerThread = 3000;

// What the relay would know: per thread id of our own choice, its numbers in order.
class Reader {
 public:
  explicit Reader(const TestSegment& segment) : view_(segment.view()) {}

  void drain() {
    uint32_t used = view_.header().rings_used.load();
    for (uint32_t i = 0; i < used; ++i) drain(i);
  }
  const std::map<uint64_t, std::vector<uint64_t>>& numbers() const { return numbers_; }
  uint64_t starts() const { return starts_; }
  uint64_t wrong() const { return wrong_; }

 private:
  void drain(uint32_t index) {
    abi::RingHeader& ring = view_.ring(index);
    uint64_t head = ring.head.load(std::memory_order_acquire);
    uint64_t tail = ring.tail.load(std::memory_order_relaxed);
    for (; tail < head; ++tail) {
      abi::Event event = view_.slot(index, tail);
      if (event.type == abi::EventType::kThreadStart) {
        ++starts_;
        owner_[index] = event.arg0;
      } else {
        if (event.arg2 != static_cast<uint32_t>(owner_[index])) ++wrong_;
        numbers_[event.arg0].push_back(event.arg1);
      }
    }
    ring.tail.store(tail, std::memory_order_release);
  }

  abi::SegmentView view_;
  std::map<uint64_t, std::vector<uint64_t>> numbers_;
  uint64_t owner_[abi::kMaxRings] = {};
  uint64_t starts_ = 0;
  uint64_t wrong_ = 0;
};

void write_all(char* segment, uint64_t id, std::atomic<uint64_t>* dropped) {
  for (uint64_t i = 0; i < kEventsPerThread; ++i) {
    abi::Event* event = reserve_event(segment);
    if (event == nullptr) {
      dropped->fetch_add(1);
      continue;
    }
    *event = {};
    event->type = abi::EventType::kLaunch;
    event->arg0 = id;
    event->arg1 = i;
    event->arg2 = static_cast<uint32_t>(gettid());
    commit_event();
  }
}

// What the relay does with rings of threads that are gone: once all is read.
void free_rings(const TestSegment& segment) {
  abi::SegmentView view = segment.view();
  for (uint32_t i = 0; i < view.header().rings_used.load(); ++i) {
    abi::RingHeader& ring = view.ring(i);
    while (ring.tail.load() != ring.head.load()) std::this_thread::yield();
    segment.free_ring(i);
  }
}

TEST(RingThreads, AStormOfThreadsLosesNothingUncountedAndMixesNobodyUp) {
  TestSegment segment;
  Reader reader(segment);
  std::atomic<bool> done{false};
  std::atomic<uint64_t> dropped{0};
  std::thread drain([&] {
    while (!done) reader.drain();
  });
  for (int wave = 0; wave < kWaves; ++wave) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreadsPerWave; ++i) {
      uint64_t id = static_cast<uint64_t>(wave * kThreadsPerWave + i);
      threads.emplace_back([&, id] { write_all(segment.base(), id, &dropped); });
    }
    for (std::thread& thread : threads) thread.join();
    free_rings(segment);
  }
  done = true;
  drain.join();
  reader.drain();

  uint64_t arrived = 0, lost = segment.view().header().lost_no_ring;
  for (const auto& [id, numbers] : reader.numbers()) {
    arrived += numbers.size();
    EXPECT_TRUE(std::is_sorted(numbers.begin(), numbers.end())) << id;
  }
  uint32_t rings = segment.view().header().rings_used;
  for (uint32_t i = 0; i < rings; ++i) lost += segment.view().ring(i).lost;
  EXPECT_EQ(lost, dropped);
  EXPECT_EQ(arrived + lost, kWaves * kThreadsPerWave * kEventsPerThread);
  // 480 threads on 12 rings: they were used again and again.
  EXPECT_EQ(rings, static_cast<uint32_t>(kThreadsPerWave));
  EXPECT_EQ(reader.starts(), static_cast<uint64_t>(kWaves * kThreadsPerWave));
  EXPECT_EQ(reader.wrong(), 0u);
}

TEST(RingThreads, AThousandThreadsThatStayHaveARingEach) {
  constexpr uint64_t kThreads = 1024;
  constexpr uint64_t kEvents = 100;
  TestSegment segment;
  std::atomic<uint64_t> dropped{0};
  std::atomic<uint64_t> ready{0};
  std::vector<std::thread> threads;
  for (uint64_t id = 0; id < kThreads; ++id) {
    threads.emplace_back([&, id] {
      ++ready;
      while (ready < kThreads) std::this_thread::yield();
      for (uint64_t i = 0; i < kEvents; ++i) {
        abi::Event* event = reserve_event(segment.base());
        if (event == nullptr) {
          ++dropped;
          continue;
        }
        *event = {};
        event->type = abi::EventType::kLaunch;
        event->arg0 = id;
        commit_event();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(dropped, 0u);
  EXPECT_EQ(segment.view().header().rings_used, kThreads);
  EXPECT_EQ(segment.view().header().lost_no_ring, 0u);
}

}  // namespace
}  // namespace lull
