// A single-producer, single-consumer ring of events in shared memory.
//
//   slot = position % kRingSlots           positions only ever grow
//
//        tail                       head
//   ------+--------------------------+----------------> position
//         |  committed, unread       |  free, up to tail + kRingSlots
//
// Guarantees
//  * The writer never waits. A full ring drops the new event and adds one to
//    `lost`, so  attempts == head + lost  at every instant, also after SIGKILL.
//  * What lies below `head` is complete; the reader may lag behind, die, and be
//    replaced: `tail` lives here, so its successor goes on where it stopped.
//  * Position is the identity of an event: (segment, ring, position) is unique
//    for the life of the segment. The collector stores each position once.
//
// Who writes what
//   head, lost, self_*      the owning thread
//   state, tid              the owning thread (take, give back)
//   tail                    the relay
//
// Memory order
//   writer: slot stores, then head.store(release)
//   reader: head.load(acquire)              pairs with the writer's release
//   reader: copies slots, then tail.store(release)
//   writer: tail.load(acquire)              pairs with the reader's release,
//           before it overwrites a slot that the reader may have been copying
//   state.store(release, kFree) by a leaving thread pairs with
//   state.compare_exchange(acquire) by the next owner.
//
// State machine (actor in brackets)
//   kFree --[new thread, CAS]--> kOwned --[thread exit]--> kFree
// A ring keeps its head and tail when the owner changes: positions go on, and a
// kThreadStart event says whose events follow.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/abi/event.h"

namespace lull::abi {

// 8192 events of 48 bytes: 384 KiB a thread, 0.4 s of a thread that launches
// 20 000 kernels a second.
inline constexpr uint32_t kRingSlots = 8192;
inline constexpr uint32_t kMaxRings = 64;

enum class RingState : uint32_t { kFree = 0, kOwned = 1 };

struct RingHeader {
  alignas(64) std::atomic<uint64_t> head;
  std::atomic<uint64_t> lost;          // events dropped because the ring was full
  std::atomic<uint64_t> self_ns;       // estimated time spent in our own code
  std::atomic<uint64_t> self_samples;  // measurements behind that estimate
  std::atomic<uint32_t> tid;           // kernel thread id of the owner
  std::atomic<RingState> state;
  std::atomic<uint64_t> short_waits;       // host waits under the threshold: count
  std::atomic<uint64_t> short_waits_ns;    // and total time
  std::atomic<uint64_t> thinned_launches;  // left out under kThinLaunches
  alignas(64) std::atomic<uint64_t> tail;
};

static_assert(sizeof(RingHeader) == 128);
static_assert(std::atomic<uint64_t>::is_always_lock_free);
static_assert(std::atomic<uint32_t>::is_always_lock_free);

}  // namespace lull::abi
