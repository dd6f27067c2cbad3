// The memory blocks of one process that are allocated now.
//
// Finds out for every free whose block it ended. Threads free what others allocated,
// and their rings arrive one after the other, so a free may come in a little before its
// allocation. It is remembered for a while, and the allocation is then marked as freed
// already. A free of a block whose allocation we have not seen (before the start, or
// lost) takes its bytes from those that were there before, if an allocator reported
// such (kFlagBefore), and else releases nothing. If the allocation comes in after all,
// those bytes are given back.
//
// Some blocks were there when the job fell asleep. Nobody knows whether they still
// are when it wakes up: Forget.
//
// Not thread-safe. Remembers which blocks changed since TakeChanges, for the store.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "daemon/aggregate/event.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// What an allocator reserves on a device is a block, too: with this bit in `allocator`,
// and the device in place of the address.
inline constexpr uint8_t kReservedBit = 0x80;
// What it had handed out of a device before we looked is a block as well. Each free of
// a block whose allocation we have not seen makes it smaller, if its size is known.
inline constexpr uint8_t kBeforeBit = 0x40;

struct BlockKey {
  uint8_t allocator = 0;
  uint64_t address = 0;
  friend bool operator==(const BlockKey&, const BlockKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const BlockKey& key) {
    return H::combine(std::move(h), key.allocator, key.address);
  }
};

struct LiveBlock {
  uint32_t series = 0;
  uint64_t bytes = 0;
  uint64_t since_ns = 0;
};

class LiveBlocks {
 public:
  // Fills released_series, released_bytes and kFlagFreedEarlier of `event`, a
  // memory event of `series` (ChangesLive).
  void Apply(const Series& series, Event& event);

  // Of control steps what was allocated of devices and pinned is known all the same.
  enum class Forgets { kAll, kTensors };
  // Forgets the blocks that are older than this, all but what is reserved. Returns a
  // kForgotten event for each series that had some, and of `is_drawn` ones for each
  // size; their own series is the caller's.
  std::vector<Event> Forget(uint64_t before_ns, Forgets what,
                            absl::FunctionRef<bool(uint32_t series)> is_drawn);

  // A block that the store remembers from an earlier life.
  void Restore(const BlockKey& key, const LiveBlock& block);

  struct Change {
    BlockKey key;
    bool live = false;  // false: the store should forget it
    LiveBlock block;
  };
  // Blocks whose stored state is out of date; counts them as stored from here on.
  std::vector<Change> TakeChanges();

  size_t size() const { return blocks_.size(); }

 private:
  struct EarlyFree {
    BlockKey key;
    uint64_t at_ns;
  };
  struct Early {
    uint64_t at_ns;
    uint64_t taken;  // bytes, from `before`
    BlockKey before;
  };
  static constexpr size_t kMaxEarlyFrees = 65536;
  static constexpr uint64_t kEarlyFreeNs = 10'000'000'000;

  void Allocate(const BlockKey& key, Event& event);
  void Free(const BlockKey& key, const BlockKey& before, Event& event);
  uint64_t TakeFromBefore(const BlockKey& before, Event& event);
  void RememberEarly(const BlockKey& key, const Early& early);
  std::optional<Early> TakeEarly(const BlockKey& key, uint64_t now);
  void Touch(const BlockKey& key, bool stored) { touched_.try_emplace(key, stored); }

  absl::flat_hash_map<BlockKey, LiveBlock> blocks_;
  absl::flat_hash_map<BlockKey, bool> touched_;  // -> was it in the store before?
  absl::flat_hash_map<BlockKey, std::vector<Early>> early_frees_;  // by at_ns
  std::deque<EarlyFree> early_order_;
};

}  // namespace lull::aggregate
