#include "preload/ring/writer.h"

#include <pthread.h>

#include "preload/entry/state_page.h"
#include "preload/ring/backing.h"
#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"

namespace lull {

constinit thread_local ThreadState t_thread = {};

namespace {

using abi::ChunkId;
using abi::kChunkEvents;
using abi::kRingChunks;
using abi::OwnerWord;
using abi::SegmentView;

constexpr uint32_t kEventsBetweenLooks = 63;

// A relay reads within 50 ms; symbols of large libraries or a machine without
// time keep it from that for seconds. After more looks in vain than this, each so long
// after the one before, it is gone. Looks and not time alone: a job that was stopped
// together with its relay (Ctrl-Z) goes on at the same moment as that.
constexpr uint32_t kLooksInVain = 8;
constexpr uint64_t kBetweenLooksNs = 8'000'000'000;

// What this thread has committed is not being read. Without a relay recording costs
// what it costs for nobody, and a `lull attach` would take the process for watched.
__attribute__((cold, noinline)) void look_for_relay(char* segment) {
  ThreadState& thread = t_thread;
  uint64_t now = monotonic_ns();
  if (now - thread.looked_ns < kBetweenLooksNs) return;
  thread.looked_ns = now;
  if (++thread.looks_in_vain > kLooksInVain) {
    end_recording(segment, abi::EndedBy::kUnread);
  }
}

void count(std::atomic<uint64_t>& counter) {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

void raise(std::atomic<uint32_t>& value, uint32_t to) {
  uint32_t seen = value.load(std::memory_order_relaxed);
  while (to > seen && !value.compare_exchange_weak(seen, to)) {
  }
}

// The lowest free ring, so that quiet programs touch few pages. One beyond all that
// had an owner gets its memory first.
bool claim_ring(char* segment, OwnerWord owner, uint32_t* index) {
  SegmentView view(segment);
  std::atomic<uint32_t>& used = view.header().rings_used;
  for (uint32_t i = 0; i < abi::kMaxRings; ++i) {
    std::atomic<OwnerWord>& word = view.owner(i);
    if (i >= used.load(std::memory_order_relaxed)) {
      bool there =
          back(segment, reinterpret_cast<char*>(&word), sizeof word) &&
          back(segment, reinterpret_cast<char*>(&view.ring(i)),
               sizeof(abi::RingHeader)) &&
          back(segment, reinterpret_cast<char*>(view.table(i)), abi::kTableBytes);
      if (!there) return false;
    }
    OwnerWord free = abi::kFreeRing;
    if (word.load(std::memory_order_relaxed) != free) continue;
    // Pairs with the relay's release: we go on from the head that it saw.
    if (!word.compare_exchange_strong(free, owner, std::memory_order_acquire)) continue;
    raise(used, i + 1);
    *index = i;
    return true;
  }
  return false;
}

// A chunk of the pool, with memory behind it. A ring that has one already leaves the
// last ones to those that have none.
bool take_chunk(char* segment, bool first, ChunkId* id) {
  SegmentView view(segment);
  std::atomic<uint32_t>& used = view.header().chunks_used;
  uint32_t limit = first ? abi::kPoolChunks : abi::kPoolChunks - abi::kFirstChunks;
  uint32_t next = used.load(std::memory_order_relaxed);
  do {
    if (next >= limit) return false;
  } while (!used.compare_exchange_weak(next, next + 1, std::memory_order_relaxed));
  *id = static_cast<ChunkId>(next);
  return back(segment, reinterpret_cast<char*>(view.chunk(*id)), abi::kChunkBytes);
}

void write_into(abi::Event* chunk, uint64_t position) {
  ThreadState& thread = t_thread;
  thread.next = chunk + position % kChunkEvents;
  thread.end = chunk + kChunkEvents;
}

void announce(pid_t tid) {
  abi::Event& event = *t_thread.next;
  event = {};
  event.start_ns = monotonic_ns();
  event.arg0 = static_cast<uint64_t>(tid);
  event.type = abi::EventType::kThreadStart;
  commit_event();
}

void write_python_state(abi::RingHeader& ring, uintptr_t state) {
  // Nobody may take the state for the thread of an earlier one.
  ring.python_state.store(0, std::memory_order_relaxed);
  ring.python_thread.store(state == 0 ? 0 : static_cast<uint64_t>(pthread_self()),
                           std::memory_order_release);
  // Pairs with the relay's acquire.
  ring.python_state.store(state, std::memory_order_release);
}

// Goes on where the ring's last owner stopped.
void adopt(char* segment, uint32_t index) {
  SegmentView view(segment);
  ThreadState& thread = t_thread;
  thread.ring = &view.ring(index);
  thread.ring_index = index;
  thread.head = thread.ring->head.load(std::memory_order_relaxed);
  thread.next = thread.end = nullptr;
  thread.tail_seen = UINT64_MAX;
  write_python_state(*thread.ring, thread.python_state);
  if (thread.head % kChunkEvents != 0) {
    write_into(&view.slot(index, thread.head) - thread.head % kChunkEvents,
               thread.head);
  }
}

bool lose_without_ring(const SegmentView& view) {
  view.header().lost_no_ring.fetch_add(1, std::memory_order_relaxed);
  return false;
}

// A look at 4096 owners takes 2 us: not for every event.
bool look_again_later(const SegmentView& view) {
  t_thread.ringless = kEventsBetweenLooks;
  return lose_without_ring(view);
}

// A vfork child shares the thread state of its parent, and nothing else would tell the
// relay that the ring is not the child's alone.
bool is_borrowed_thread() {
  StatePage* page = state_page();
  pid_t owner = page == nullptr ? 0 : page->owner.load(std::memory_order_relaxed);
  return owner != 0 && owner != raw_getpid();
}

}  // namespace

bool take_ring(char* segment) {
  SegmentView view(segment);
  ThreadState& thread = t_thread;
  if (thread.ringless != 0) {
    --thread.ringless;
    return lose_without_ring(view);
  }
  if (is_borrowed_thread()) return lose_without_ring(view);
  pid_t tid = raw_gettid();
  uint32_t taking = view.header().rings_taken.fetch_add(1, std::memory_order_relaxed);
  OwnerWord owner = abi::owner_word(taking, static_cast<uint32_t>(tid));
  uint32_t index = 0;
  if (!claim_ring(segment, owner, &index)) return look_again_later(view);
  adopt(segment, index);
  // With room for the event that says whose ring it is: without it the relay would take
  // what follows for the previous owner's.
  if (thread.next >= thread.end && !open_chunk(segment)) {
    view.owner(index).store(abi::kFreeRing, std::memory_order_release);
    return look_again_later(view);
  }
  thread.generation = g_state->generation.load(std::memory_order_relaxed);
  thread.drawn = {};  // a fork child would draw what its parent draws
  announce(tid);
  return true;
}

void show_python_state(uintptr_t state) {
  ThreadState& thread = t_thread;
  thread.python_state = state;
  if (thread.generation == 0 ||
      thread.generation != g_state->generation.load(std::memory_order_relaxed)) {
    return;
  }
  write_python_state(*thread.ring, state);
}

bool open_chunk(char* segment) {
  SegmentView view(segment);
  ThreadState& thread = t_thread;
  abi::RingHeader& ring = *thread.ring;
  std::atomic<ChunkId>* table = view.table(thread.ring_index);
  uint64_t number = thread.head / kChunkEvents;
  uint64_t oldest = ring.oldest.load(std::memory_order_relaxed);
  // Pairs with the relay's release: it has copied what we are about to overwrite.
  uint64_t tail = ring.tail.load(std::memory_order_acquire);
  if (tail != thread.tail_seen || tail == thread.head) {
    thread.tail_seen = tail;
    thread.looks_in_vain = 0;
  } else {
    look_for_relay(segment);
  }
  ChunkId id = 0;
  if (oldest < number && (oldest + 1) * kChunkEvents <= tail) {
    id = table[oldest % kRingChunks].load(std::memory_order_relaxed);
    ring.oldest.store(oldest + 1, std::memory_order_relaxed);
  } else if (number - oldest >= kRingChunks ||
             !take_chunk(segment, number == oldest, &id)) {
    return false;
  }
  table[number % kRingChunks].store(id, std::memory_order_relaxed);
  write_into(view.chunk(id), thread.head);
  return true;
}

bool open_chunk_or_lose(char* segment) {
  if (open_chunk(segment)) return true;
  count(t_thread.ring->lost);
  return false;
}

}  // namespace lull
