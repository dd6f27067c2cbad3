#include "daemon/relay/read/target_rings.h"

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "daemon/base/text.h"
#include "daemon/procfs/live_threads.h"
#include "daemon/relay/samples/run_delay.h"

namespace lull::relay {

TargetRings::TargetRings(uint64_t key, const SegmentReader& segment, SpoolState* state)
    : key_(key), segment_(segment), state_(state) {
  auto known = state_->rings.find({key_, kRelayRing});
  if (known == state_->rings.end()) return;
  own_.next = own_.released = known->second.end;
  own_.lost_relay = known->second.lost_relay;
}

bool TargetRings::Follow() {
  bool possible = true;
  const uint32_t used = segment_.RingsUsed();
  while (rings_.size() < used) {
    rings_.emplace_back();
    possible = Resume(size() - 1) && possible;
  }
  return possible;
}

bool TargetRings::Resume(uint32_t index) {
  TargetRing& ring = rings_[index];
  RingView view = segment_.Ring(index);
  uint64_t tail = segment_.Tail(index);
  ring.tid = abi::tid_of(segment_.Owner(index));
  auto known = state_->rings.find({key_, index});
  uint64_t end = 0;
  if (known != state_->rings.end()) {
    end = known->second.end;
    ring.lost_relay = known->second.lost_relay;
    if (known->second.tid != 0) ring.tid = known->second.tid;
  }
  // A tail beyond the spool's end: a predecessor dropped these for want of room,
  // and died before it could write that down.
  if (tail > end) ring.lost_relay += tail - end;
  ring.next = std::max(tail, end);
  ring.released = tail;
  if (ring.next <= view.head && view.head - tail <= abi::kRingEvents &&
      view.head <= kMaxWireTotal) {
    return true;
  }
  // How many there were is not known, and not guessed.
  ring.next = ring.released = end;
  if (tail > end) ring.lost_relay -= tail - end;
  return false;
}

void TargetRings::Lose(TargetRing* ring, uint64_t events) {
  ring->lost_relay += events;
  lost_ += events;
}

void TargetRings::LoseTheRest() {
  for (uint32_t i = 0; i < size(); ++i) {
    TargetRing& ring = rings_[i];
    uint64_t head = segment_.Ring(i).head;
    if (head > ring.next && head - ring.next <= abi::kRingEvents) {
      Lose(&ring, head - ring.next);
      ring.next = head;
    }
  }
}

void TargetRings::RememberProgress(uint32_t number, TargetRing* ring) {
  if (ring->next == 0 && ring->lost_relay == 0) return;
  RingProgress& progress = state_->rings[{key_, number}];
  // Batches alone do not tell a successor of a gap behind their last event.
  if (progress.end != ring->next) state_->needs_checkpoint = true;
  progress = {ring->next, ring->lost_relay, ring->tid};
  if (ring->next == ring->released) return;
  if (number != kRelayRing) segment_.Release(number, ring->next);
  ring->released = ring->next;
}

void TargetRings::Commit() {
  for (uint32_t i = 0; i < size(); ++i) RememberProgress(i, &rings_[i]);
  RememberProgress(kRelayRing, &own_);
}

void TargetRings::DropUnspooled(uint32_t number, TargetRing* ring) {
  auto known = state_->rings.find({key_, number});
  uint64_t end = known == state_->rings.end() ? 0 : known->second.end;
  uint64_t already = known == state_->rings.end() ? 0 : known->second.lost_relay;
  // All between what is in the spool (or was dropped before) and what was read, of
  // which the slots that could not be are counted by now.
  uint64_t pending = ring->next - end;
  uint64_t counted = ring->lost_relay - std::min(already, ring->lost_relay);
  if (pending > counted) Lose(ring, pending - counted);
  RememberProgress(number, ring);
}

void TargetRings::Drop() {
  for (uint32_t i = 0; i < size(); ++i) DropUnspooled(i, &rings_[i]);
  DropUnspooled(kRelayRing, &own_);
}

void TargetRings::FreeThoseOfGoneThreads(pid_t pid,
                                         absl::FunctionRef<bool()> has_exited) {
  for (uint32_t i = 0; i < size(); ++i) {
    TargetRing& ring = rings_[i];
    if (ring.gone == abi::kFreeRing) continue;
    // Its head stands still, so that all that it committed is released by now or later.
    if (segment_.Ring(i).head != ring.released) continue;
    segment_.FreeRing(i, ring.gone);
    ring.gone = abi::kFreeRing;
    ring.submits = ring.allocates = false;
  }
  FindGoneThreads(pid, has_exited);
}

// Threads are only looked at when others have come since: as long as nobody wants a
// ring, none need be free.
void TargetRings::FindGoneThreads(pid_t pid, absl::FunctionRef<bool()> has_exited) {
  uint32_t takings = segment_.header().rings_taken.load(std::memory_order_acquire);
  if (takings == takings_seen_) return;
  // The owners before the threads: whoever takes a ring meanwhile is not taken for one
  // that is gone.
  std::vector<abi::OwnerWord> owners(rings_.size());
  absl::flat_hash_map<uint32_t, uint32_t> last_taking;  // of a thread id
  absl::flat_hash_set<uint32_t> asked;
  for (uint32_t i = 0; i < size(); ++i) {
    owners[i] = segment_.Owner(i);
    if (owners[i] == abi::kFreeRing) continue;
    asked.insert(abi::tid_of(owners[i]));
    uint32_t& last = last_taking[abi::tid_of(owners[i])];
    last = std::max(last, abi::taking_of(owners[i]));
  }
  const bool in_namespace = segment_.header().pid != static_cast<uint32_t>(pid);
  auto threads = LiveThreads(pid, in_namespace, std::move(asked));
  // The threads of a process that has just ended cannot be seen, either.
  threads_unseen_ = !threads.has_value() && !has_exited();
  if (!threads) return;
  takings_seen_ = takings;
  for (uint32_t i = 0; i < size(); ++i) {
    if (owners[i] == abi::kFreeRing) continue;
    uint32_t tid = abi::tid_of(owners[i]);
    // The number of a thread that is gone may be another one's by now.
    bool alive =
        threads->contains(tid) && last_taking[tid] == abi::taking_of(owners[i]);
    if (!alive) rings_[i].gone = owners[i];
  }
}

uint64_t TargetRings::Backlog() const {
  uint64_t most = 0;
  for (uint32_t i = 0; i < size(); ++i) {
    most = std::max(most, segment_.Head(i) - rings_[i].released);
  }
  return most;
}

bool TargetRings::IsShortOfRoom() const {
  constexpr uint32_t kForAll = abi::kPoolChunks - abi::kFirstChunks;
  if (segment_.header().chunks_used.load(std::memory_order_relaxed) < kForAll) {
    return false;
  }
  for (uint32_t i = 0; i < size(); ++i) {
    const RingView ring = segment_.Ring(i);
    const uint64_t released = rings_[i].released;
    const bool has_one_to_reuse = released / abi::kChunkEvents > ring.oldest;
    const uint64_t in_chunk = ring.head % abi::kChunkEvents;
    const bool near_end = in_chunk == 0 || in_chunk >= abi::kChunkEvents / 2;
    if (ring.head != released && near_end && !has_one_to_reuse) return true;
  }
  return false;
}

}  // namespace lull::relay
