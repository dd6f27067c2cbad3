// A segment in plain memory that this process records into, for as long as the
// object lives.
#pragma once

#include <sys/mman.h>

#include <cstdlib>
#include <vector>

#include "preload/entry/state.h"
#include "preload/entry/state_page.h"
#include "preload/ring/backing.h"
#include "preload/ring/writer.h"

namespace lull {

class TestSegment {
 public:
  TestSegment() : before_(g_state) {
    void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) std::abort();
    base_ = static_cast<char*>(base);
    view().control().armed = 1;
    view().control().wait_threshold_ns = abi::kDefaultWaitThresholdNs;
    backing_begin();
    state_.segment = base_;
    state_.generation = next_generation();
    state_.mode = Mode::kRecording;
    g_state = &state_;
  }
  ~TestSegment() {
    g_state = before_;
    munmap(base_, abi::kSegmentSize);
  }
  TestSegment(const TestSegment&) = delete;
  TestSegment& operator=(const TestSegment&) = delete;

  char* base() const { return base_; }
  abi::SegmentView view() const { return abi::SegmentView(base_); }

  // What the relay does once the thread that had the ring is gone.
  void free_ring(uint32_t ring) const {
    view().owner(ring).store(abi::kFreeRing, std::memory_order_release);
  }

  // What the ring holds and nobody has read.
  std::vector<abi::Event> unread(uint32_t ring) const {
    std::vector<abi::Event> events;
    uint64_t head = view().ring(ring).head.load(std::memory_order_acquire);
    for (uint64_t at = view().ring(ring).tail.load(); at < head; ++at) {
      events.push_back(view().slot(ring, at));
    }
    return events;
  }

 private:
  State* before_;
  State state_ = {};
  char* base_;
};

}  // namespace lull
