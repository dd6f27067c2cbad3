// NCCL's communicators, and which of their collectives comes next.
//
// NCCL demands that all ranks of a communicator call its collectives in one order. So
// the n-th on a communicator is the same collective on all of its ranks, and n can be
// counted by each rank alone, from the communicator's beginning on, whether anything is
// recorded meanwhile or not. Calls within ncclGroupStart and ncclGroupEnd become one
// piece of work for each communicator, which is counted once, if it has a collective at
// all.
//
// A communicator is the same on all ranks by its id: a hash of ncclUniqueId, which they
// all were given; of one that was split off, of its parent's id, which split of the
// parent it was, and the colour.
//
// One that was made before we were there (lull attach), or beyond kMost, is not known:
// it has no numbers, and nothing is told of its collectives.
//
// Any thread, without locks: NCCL lets one thread at a time use a communicator.
// Async-signal and fork need nothing: a child cannot use its parent's.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/hooks/cuda_types.h"

namespace lull {

struct Communicator {
  std::atomic<const void*> handle;  // nullptr: free
  uint64_t id;                      // never 0
  uint32_t members;                 // 0: not asked for yet
  std::atomic<uint32_t> collectives;
  std::atomic<uint32_t> splits;

  // What a group that is open has of it. Of the thread that uses the communicator.
  uint16_t next_in_group;  // index + 1
  uint16_t group_hook;     // the first collective's; 0: none yet
  bool in_group;
  bool group_has_some;  // calls that not all ranks make alike (send, receive)
  uint64_t group_bytes;
};

class Communicators {
 public:
  static constexpr uint32_t kMost = 1024;

  // nullptr: not known.
  Communicator* Find(const void* handle);
  Communicator& At(uint32_t index) { return slots_[index]; }
  uint32_t IndexOf(const Communicator& one) const {
    return static_cast<uint32_t>(&one - slots_);
  }

  // A handle that comes again is another communicator.
  void Add(const void* handle, uint64_t id, uint32_t members);
  void Remove(const void* handle);

 private:
  static constexpr uint32_t kProbes = 64;
  static uint32_t FirstOf(const void* handle);

  Communicator slots_[kMost];
};

struct NcclThread {
  uint16_t depth;   // calls of NCCL that are under way
  uint16_t groups;  // that are open
  uint16_t first;   // communicator of the group, index + 1
};
extern constinit thread_local NcclThread t_nccl
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

uint64_t communicator_id(const UniqueId* ids, int count);
uint64_t split_id(uint64_t parent, uint32_t split, int color);

// Bytes of one element of an ncclDataType_t; 0: unknown.
uint32_t bytes_of_type(int datatype);

}  // namespace lull
