#include "preload/ring/writer.h"

#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

// glibc 2.18; libstdc++ uses it for thread_local objects. Unlike pthread keys it is
// in libc on every version, and it runs while thread-local storage still lives.
extern "C" int __cxa_thread_atexit_impl(void (*function)(void*), void* argument,
                                        void* library);
extern "C" void* __dso_handle __attribute__((visibility("hidden")));

namespace lull {

constinit thread_local ThreadState t_thread = {};

namespace {

void count(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// A fork child that inherited this call finds another generation, and leaves the
// parent's ring alone.
void give_back_ring(void*) {
  ThreadState& thread = t_thread;
  if (thread.ring != nullptr &&
      thread.generation == g_state->generation.load(std::memory_order_relaxed)) {
    // Pairs with the acquire in claim_ring(): the next owner goes on from our head.
    thread.ring->state.store(abi::RingState::kFree, std::memory_order_release);
  }
  thread.ring = nullptr;
  thread.slots = nullptr;
  thread.generation = 0;
}

bool is_full(const abi::RingHeader& ring) {
  return ring.head.load(std::memory_order_relaxed) -
             ring.tail.load(std::memory_order_acquire) >=
         abi::kRingSlots;
}

// A ring of our own, with room for the event that says so: without it the relay
// would take what follows for the previous owner's.
abi::RingHeader* claim_ring(const abi::SegmentView& view, uint32_t* index) {
  for (uint32_t i = 0; i < abi::kMaxRings; ++i) {
    abi::RingHeader& ring = view.ring(i);
    abi::RingState free = abi::RingState::kFree;
    if (ring.state.load(std::memory_order_relaxed) != free) continue;
    if (!ring.state.compare_exchange_strong(free, abi::RingState::kOwned,
                                            std::memory_order_acquire)) {
      continue;
    }
    if (!is_full(ring)) {
      *index = i;
      return &ring;
    }
    ring.state.store(abi::RingState::kFree, std::memory_order_release);
  }
  return nullptr;
}

void announce(pid_t tid) {
  ThreadState& thread = t_thread;
  abi::Event& event = thread.slots[thread.head % abi::kRingSlots];
  event = {};
  event.start_ns = monotonic_ns();
  event.arg0 = static_cast<uint64_t>(tid);
  event.type = abi::EventType::kThreadStart;
  commit_event();
}

}  // namespace

bool take_ring(char* segment) {
  abi::SegmentView view(segment);
  uint32_t index = 0;
  abi::RingHeader* ring = claim_ring(view, &index);
  if (ring == nullptr) {
    view.header().lost_no_ring.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  pid_t tid = raw_gettid();
  ThreadState& thread = t_thread;
  thread.ring = ring;
  thread.slots = view.slots(index);
  thread.head = ring->head.load(std::memory_order_relaxed);
  thread.cached_tail = ring->tail.load(std::memory_order_acquire);
  thread.generation = g_state->generation.load(std::memory_order_relaxed);
  ring->tid.store(static_cast<uint32_t>(tid), std::memory_order_relaxed);
  announce(tid);
  // The call allocates. The main thread ends with the process and does without, so
  // that it can take its ring anywhere, inside an allocator too.
  if (tid != raw_getpid()) {
    __cxa_thread_atexit_impl(give_back_ring, nullptr, &__dso_handle);
  }
  return true;
}

bool refresh_tail() {
  ThreadState& thread = t_thread;
  // Pairs with the relay's release: it has copied what we are about to overwrite.
  thread.cached_tail = thread.ring->tail.load(std::memory_order_acquire);
  if (thread.head - thread.cached_tail < abi::kRingSlots) return true;
  count(thread.ring->lost);
  return false;
}

}  // namespace lull
