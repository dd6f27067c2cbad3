// The hot end of a ring: what a thread needs to commit an event.
//
// One ThreadState per thread, in initial-exec TLS (at most 256 bytes, because an
// attached library gets no more). Only its own thread touches it.
#pragma once

#include <cstdint>

#include "preload/abi/segment.h"
#include "preload/entry/state.h"
#include "preload/support/drawn_blocks.h"

namespace lull {

struct ThreadState {
  uint32_t generation;  // of State; another value means the ring is not ours
  uint32_t watched;     // host waits of this thread are reported: it launches
                        // GPU work or it is the main thread of Python
  abi::RingHeader* ring;
  abi::Event* next;         // where the next event goes; `end`: a chunk must be opened
  abi::Event* end;          // of the chunk that is open
  uint64_t head;            // private copy of ring->head
  uintptr_t mark;           // hooks/guard.h: of the outermost hook, 0 = none
  uint64_t last_launch_ns;  // end of this thread's last launch, 0 = none yet
  uint32_t ring_index;      // which of the segment's rings it is
  uint32_t tick;            // counts hooks, for the self-cost sampler
  uint32_t judged;          // generation for which `watched` was last decided
  uint32_t ringless;        // events until it looks for a ring again
  uint32_t passed;          // hooks/guard.h: hooked calls below the mark
  uint32_t looks_in_vain;   // at a tail that stayed where it was
  DrawnBlocks drawn;        // small blocks of tensors; a ring's owner seeds it anew
  uint64_t tail_seen;       // when the last chunk was opened
  uint64_t looked_ns;       // when the last of those looks was
  uintptr_t python_state;   // its PyThreadState, as last seen; 0: none
};
static_assert(sizeof(ThreadState) <= 128);

// constinit: without it every access from another file goes through a wrapper that
// asks whether a constructor must run.
extern constinit thread_local ThreadState t_thread
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

// Takes a ring for this thread; false when none is left, or no chunk for it (counts
// lost_no_ring). Plain stores and system calls that cannot block: neither the heap nor
// the loader is asked, so any thread may take its ring anywhere.
__attribute__((cold, noinline)) bool take_ring(char* segment);

// Says in the ring, if there is one, whose PyThreadState it is; take_ring() does it for
// a ring that comes later. Cold: a thread keeps its state.
__attribute__((cold, noinline)) void show_python_state(uintptr_t state);
inline void notice_python_state(uintptr_t state) {
  if (__builtin_expect(t_thread.python_state != state, 0)) show_python_state(state);
}

// Opens the next chunk of the ring, one that was read or one of the pool. False, and
// nothing counted: there is none now. Once in 170 events: 20 ns for one that was read,
// 1.5 us for one of the pool (two pages).
__attribute__((cold, noinline)) bool open_chunk(char* segment);

// The same for an event, which is counted as lost without one.
__attribute__((cold, noinline)) bool open_chunk_or_lose(char* segment);

// Where to write the next event, or nullptr (counted as lost). The caller fills
// all fields, then calls commit_event(). Wait-free; reserve, fill and commit take
// 1.7 ns together, 3.7 with a reader beside them (tests/bench/ring_bench.cc, Xeon, ring
// in cache).
inline abi::Event* reserve_event(char* segment) {
  ThreadState& thread = t_thread;
  if (__builtin_expect(
          thread.generation != g_state->generation.load(std::memory_order_relaxed),
          0)) {
    if (!take_ring(segment)) return nullptr;
  }
  // Not `==`: nothing that could come between reserve and commit, a signal handler
  // whose calls are taken for the program's, may make the thread write beyond its
  // chunk.
  if (__builtin_expect(thread.next >= thread.end, 0)) {
    if (!open_chunk_or_lose(segment)) return nullptr;
  }
  return thread.next;
}

// Asks for the cache line at `address`, to be written soon. Where the processor has no
// such instruction it does nothing.
inline void prefetch_to_write(const void* address) {
#if defined(__x86_64__)
  // GCC has a builtin, which without -mprfchw only asks for a line that can be read.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(address)));
#else
  __builtin_prefetch(address, 1);
#endif
}

// Publishes the event last reserved. Pairs with the relay's acquire of head.
//
// The relay has read what the ring's memory held before, on another processor as a
// rule. Until a line is back the store waits in a buffer, and with it the thread's next
// locked instruction: after a hook of the allocator, the unlocking of PyTorch's mutex.
// So the line is asked for one event ahead: steps of tests/bench/trainer.py were 5.65
// and 4.97 % longer without it, 3.54 and 3.94 % with it (two runs each in turn, 617
// control steps in each, two processors).
inline void commit_event() {
  ThreadState& thread = t_thread;
  abi::Event* next = ++thread.next;
  thread.ring->head.store(++thread.head, std::memory_order_release);
  // What lies behind a chunk is another thread's.
  if (next < thread.end) prefetch_to_write(reinterpret_cast<char*>(next + 1) - 1);
}

}  // namespace lull
