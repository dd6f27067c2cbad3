// A single-producer, single-consumer ring of events in shared memory.
//
// The slots of a ring lie in chunks of 170 events. The chunks come from one pool of the
// segment, when a thread needs them: a quiet thread has one, a busy one whose reader is
// late has up to 1024. A chunk stays with its ring, and is used again once it was read.
//
//   number of a chunk = position / kChunkEvents     positions only ever grow
//   which chunk of the pool = table[number % kRingChunks]
//   slot in it = position % kChunkEvents
//
//     oldest       tail                  head
//   ----+------------+---------------------+----------------> position
//       | to be used | committed, unread   |  free, up to what the pool gives
//       | again      |                     |
//
// Guarantees
//  * The writer never waits. Where neither a chunk of its own nor one of the pool is
//    free it drops the new event and adds one to `lost`, so  attempts == head + lost
//    at every instant, also after SIGKILL.
//  * What lies below `head` is complete; the reader may lag behind, die, and be
//    replaced: `tail` lives here, so its successor goes on where it stopped.
//  * Position is the identity of an event: (segment, ring, position) is unique
//    for the life of the segment. The collector stores each position once.
//  * A chunk has memory behind it before the first event is written to it.
//
// Who writes what
//   head, lost, oldest, gpu_calls,      the owning thread
//   self_*, short_waits*, python_*, table
//   owner word                          a thread that takes the ring; the relay, which
//                                       gives back the ring of a thread that is gone
//   tail                                the relay
//
// Memory order
//   writer: table entry and slot stores, then head.store(release)
//   reader: head.load(acquire)              pairs with the writer's release
//   reader: copies slots, then tail.store(release)
//   writer: tail.load(acquire)              pairs with the reader's release,
//           before it uses a chunk again that the reader may have been copying
//   owner.compare_exchange(release, to free) by the relay pairs with
//   owner.compare_exchange(acquire) by the next owner: it goes on from our head.
//
// State machine of the owner word (actor in brackets)
//   free --[new thread, CAS]--> owned --[relay, CAS, once the thread is gone and all
//   that it committed was read]--> free
// Nothing happens when a thread ends: no destructor is registered for it, because that
// takes the loader's lock and allocates. A ring keeps its head, tail and chunks when
// the owner changes: positions go on, and a kThreadStart event says whose events
// follow.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "preload/abi/event.h"

namespace lull::abi {

inline constexpr uint32_t kMaxRings = 4096;

// A chunk is two pages, all but 32 bytes of them events.
inline constexpr uint32_t kChunkEvents = 170;
inline constexpr size_t kChunkBytes = 8192;
// A power of two: the most chunks of one ring. 8 MiB, 1.3 s of an eager trainer that
// commits 130 000 events a second on one thread.
inline constexpr uint32_t kRingChunks = 1024;
inline constexpr uint64_t kRingEvents = uint64_t{kRingChunks} * kChunkEvents;

// 24 MiB for all rings together. The last kFirstChunks of them are for rings that have
// none yet: busy threads leave that much to threads that are still to come.
inline constexpr uint32_t kPoolChunks = 3072;
inline constexpr uint32_t kFirstChunks = 1024;
using ChunkId = uint16_t;
static_assert(kPoolChunks <= UINT16_MAX && kFirstChunks < kPoolChunks);
static_assert(kChunkEvents * sizeof(Event) <= kChunkBytes);
static_assert((kRingChunks & (kRingChunks - 1)) == 0);

// Whose ring it is: the kernel thread id, as the target sees it, below; above it the
// number of the taking, from SegmentHeader::rings_taken, so that the same thread id of
// another thread makes another word. 0: free.
using OwnerWord = uint64_t;
inline constexpr OwnerWord kFreeRing = 0;
constexpr OwnerWord owner_word(uint32_t taking, uint32_t tid) {
  return OwnerWord{taking} << 32 | tid;
}
constexpr uint32_t tid_of(OwnerWord owner) { return static_cast<uint32_t>(owner); }
constexpr uint32_t taking_of(OwnerWord owner) {
  return static_cast<uint32_t>(owner >> 32);
}

struct RingHeader {
  alignas(64) std::atomic<uint64_t> head;
  std::atomic<uint64_t> lost;            // events for which there was no room
  std::atomic<uint64_t> gpu_calls;       // GPU calls of the ring's owners
  std::atomic<uint64_t> self_ns;         // estimated time spent in our own code
  std::atomic<uint64_t> oldest;          // number of the first chunk that the ring has
  std::atomic<uint64_t> short_waits;     // host waits under the threshold: count
  std::atomic<uint64_t> short_waits_ns;  // and total time
  std::atomic<uint64_t> thinned_launches;  // left out under kThinLaunches
  alignas(64) std::atomic<uint64_t> tail;
  std::atomic<uint64_t> self_samples;  // measurements behind self_ns
  // The owner's PyThreadState and its pthread_self(), for whoever reads its frames from
  // outside (docs/host_samples.md); 0: no Python was seen on it. The second is written
  // first.
  std::atomic<uint64_t> python_state;
  std::atomic<uint64_t> python_thread;
};

static_assert(sizeof(RingHeader) == 128);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);
static_assert(std::atomic<ChunkId>::is_always_lock_free);

}  // namespace lull::abi
