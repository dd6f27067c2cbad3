// What a ring gives: events per second of one writer with and without a
// reader beside it, as a ratio to the same 48-byte stores without a ring, in one run.
// Says at the end how the budget (15 million events a second) is met.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <thread>
#include <vector>

#include "preload/support/clock.h"
#include "tests/preload/support/test_segment.h"

namespace lull {
namespace {

constexpr uint64_t kEvents = 4'000'000;
constexpr int kRounds = 15;
constexpr double kBudgetPerSecond = 15e6;

void fill(abi::Event* event, uint64_t number) {
  event->start_ns = number;
  event->duration_ns = number;
  event->arg0 = number;
  event->arg1 = number;
  event->py_stack = 0;
  event->native_stack = 0;
  event->arg2 = 0;
  event->api = 1;
  event->type = abi::EventType::kLaunch;
  event->flags = 0;
}

constexpr size_t kPlainSlots = 8'192;

// Takes what is there out of ring 0, touching every event, until told to stop.
void drain(abi::SegmentView view, const std::atomic<bool>* stop, uint64_t* sum) {
  abi::RingHeader& ring = view.ring(0);
  while (!*stop) {
    uint64_t head = ring.head.load(std::memory_order_acquire);
    uint64_t tail = ring.tail.load(std::memory_order_relaxed);
    for (; tail < head; ++tail) *sum += view.slot(0, tail).start_ns;
    ring.tail.store(tail, std::memory_order_release);
  }
}

double with_ring(bool reader) {
  TestSegment segment;
  std::atomic<bool> stop{false};
  uint64_t sum = 0;
  std::thread thread;
  if (reader) thread = std::thread(drain, segment.view(), &stop, &sum);
  reserve_event(segment.base());  // takes the ring outside of the measurement
  abi::RingHeader& ring = segment.view().ring(0);
  uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kEvents; ++i) {
    if (!reader) ring.tail.store(i, std::memory_order_relaxed);
    abi::Event* event = reserve_event(recording_segment());
    while (event == nullptr) {
      sched_yield();  // the reader is late: wait for it, to see what the pair does
      event = reserve_event(recording_segment());
    }
    fill(event, i);
    commit_event();
  }
  double seconds = static_cast<double>(monotonic_ns() - start) * 1e-9;
  stop = true;
  if (reader) thread.join();
  return kEvents / seconds;
}

double without_ring() {
  std::vector<abi::Event> slots(kPlainSlots);
  uint64_t start = monotonic_ns();
  for (uint64_t i = 0; i < kEvents; ++i) {
    fill(&slots[i % kPlainSlots], i);
    asm volatile("" : : "r"(slots.data()) : "memory");
  }
  return kEvents / (static_cast<double>(monotonic_ns() - start) * 1e-9);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
  return values[values.size() / 2];
}

int report() {
  std::vector<double> alone, drained, plain;
  for (int i = 0; i < kRounds; ++i) {
    plain.push_back(without_ring());
    alone.push_back(with_ring(false));
    drained.push_back(with_ring(true));
  }
  double base = median(plain);
  std::printf("plain stores            %7.1f M/s\n", base * 1e-6);
  std::printf("ring, room always       %7.1f M/s  %.2f of plain\n",
              median(alone) * 1e-6, median(alone) / base);
  std::printf("ring, reader beside it  %7.1f M/s  %.2f of plain\n",
              median(drained) * 1e-6, median(drained) / base);
  bool met = median(alone) >= kBudgetPerSecond;
  std::printf("budget %.0f M/s for one writer: %s\n", kBudgetPerSecond * 1e-6,
              met ? "met" : "MISSED");
  return 0;
}

}  // namespace
}  // namespace lull

int main() { return lull::report(); }
