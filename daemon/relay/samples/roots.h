// Where a thread's stack begins. From CPython 3.11 on, its outermost frame is the first
// one in the first chunk of its data stack, call after call. A walk that ends anywhere
// else went astray: over a frame that returned meanwhile, or over bytes that were none.
#pragma once

#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "daemon/relay/samples/memory.h"

namespace lull::relay {

class Roots {
 public:
  // The outermost frame of a stack whose newest chunk is this one; 0: it cannot be
  // told.
  uint64_t Of(uint64_t chunk, TargetMemory* memory);
  // Chunks may be others' by now.
  void Clear() { known_.clear(); }

 private:
  absl::flat_hash_map<uint64_t, uint64_t> known_;  // by chunk
};

}  // namespace lull::relay
