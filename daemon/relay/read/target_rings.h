// How far each ring of a target has been read, committed and given back, and which ones
// belong to threads that are gone.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "daemon/relay/deliver/spool_state.h"
#include "daemon/relay/read/segment_reader.h"

namespace lull::relay {

struct TargetRing {
  uint64_t next = 0;      // to be read next
  uint64_t released = 0;  // the tail, as last stored
  uint32_t tid = 0;
  uint64_t lost_relay = 0;
  bool submits = false;                  // its thread gives the GPU work
  bool allocates = false;                // or allocates tensors
  abi::OwnerWord gone = abi::kFreeRing;  // the owner whose thread has ended
};

class TargetRings {
 public:
  // Both must outlive it. Goes on where `state` and the tails say.
  TargetRings(uint64_t key, const SegmentReader& segment, SpoolState* state);

  // Rings that came into use since the last call are read from now on. False: one of
  // them cannot be what it says.
  bool Follow();
  uint32_t size() const { return static_cast<uint32_t>(rings_.size()); }
  TargetRing& at(uint32_t ring) { return rings_[ring]; }
  const TargetRing& at(uint32_t ring) const { return rings_[ring]; }
  TargetRing& own() { return own_; }  // kRelayRing
  const TargetRing& own() const { return own_; }
  uint64_t lost() const { return lost_; }  // events, by this relay

  void Lose(TargetRing* ring, uint64_t events);
  // All that is committed and not read yet.
  void LoseTheRest();
  // What was read is in the spool: its slots go back to the writers.
  void Commit();
  // What was read found no room in the spool, and is lost.
  void Drop();
  // Gives back the rings of threads that are gone. `pid`: the process, as we see it.
  void FreeThoseOfGoneThreads(pid_t pid, absl::FunctionRef<bool()> has_exited);
  // /proc did not tell which threads are gone.
  bool threads_unseen() const { return threads_unseen_; }
  // The fullest ring: committed events that are not given back yet.
  uint64_t Backlog() const;
  // The pool is used up, and a ring is in the second half of its last chunk with none
  // given back: events of its thread are lost soon, unless what was read is committed.
  bool IsShortOfRoom() const;

 private:
  bool Resume(uint32_t index);
  void RememberProgress(uint32_t number, TargetRing* ring);
  void DropUnspooled(uint32_t number, TargetRing* ring);
  void FindGoneThreads(pid_t pid, absl::FunctionRef<bool()> has_exited);

  const uint64_t key_;
  const SegmentReader& segment_;
  SpoolState* const state_;
  std::vector<TargetRing> rings_;  // those that have been used
  TargetRing own_;
  uint64_t lost_ = 0;
  uint32_t takings_seen_ = 0;  // of rings, when the threads were last looked at
  bool threads_unseen_ = false;
};

}  // namespace lull::relay
