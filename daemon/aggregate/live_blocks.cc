#include "daemon/aggregate/live_blocks.h"

#include "daemon/aggregate/accumulate.h"

namespace lull::aggregate {

void LiveBlocks::Apply(const Series& series, Event& event) {
  auto allocator = static_cast<uint8_t>(series.variant & kAllocatorMask);
  if (series.type == EventType::kTorchReserved) {
    allocator |= kReservedBit;
    BlockKey key{allocator, event.arg2};
    auto known = blocks_.find(key);
    if (known != blocks_.end() && known->second.since_ns > event.start_ns) {
      event.flags |= kFlagFreedEarlier;  // another thread's ring was faster
      return;
    }
    return Allocate(key, event);
  }
  if ((series.variant & kVariantFailed) != 0 || event.arg0 == 0) return;
  BlockKey key{allocator, event.arg0};
  if ((series.variant & kVariantFree) != 0) {
    Free(key, event);
  } else {
    Allocate(key, event);
  }
}

void LiveBlocks::Allocate(const BlockKey& key, Event& event) {
  uint64_t now = MemoryOrderNs(event);
  if (auto early = early_frees_.find(key); early != early_frees_.end()) {
    const uint64_t freed = early->second;
    early_frees_.erase(early);
    if (freed >= now && freed - now <= kEarlyFreeNs) {
      event.flags |= kFlagFreedEarlier;
      event.released_bytes = freed - now;
      return;
    }
  }
  auto [it, fresh] = blocks_.try_emplace(key);
  Touch(key, !fresh);
  if (!fresh) {  // its free was lost, or is still on its way
    event.released_series = it->second.series;
    event.released_bytes = it->second.bytes;
  }
  it->second = LiveBlock{event.series, event.arg1, now};
}

void LiveBlocks::Free(const BlockKey& key, Event& event) {
  auto it = blocks_.find(key);
  if (it == blocks_.end()) return RememberEarly(key, event.start_ns);
  // The block is younger than this free: the free was for its predecessor, which
  // the younger block has ended already.
  if (it->second.since_ns > event.start_ns) return;
  event.released_series = it->second.series;
  event.released_bytes = it->second.bytes;
  Touch(key, true);
  blocks_.erase(it);
}

void LiveBlocks::RememberEarly(const BlockKey& key, uint64_t at_ns) {
  early_frees_[key] = at_ns;
  early_order_.push_back({key, at_ns});
  while (early_order_.size() > kMaxEarlyFrees ||
         early_order_.front().at_ns + kEarlyFreeNs < at_ns) {
    auto it = early_frees_.find(early_order_.front().key);
    if (it != early_frees_.end() && it->second == early_order_.front().at_ns) {
      early_frees_.erase(it);
    }
    early_order_.pop_front();
  }
}

void LiveBlocks::Restore(const BlockKey& key, const LiveBlock& block) {
  blocks_[key] = block;
}

std::vector<LiveBlocks::Change> LiveBlocks::TakeChanges() {
  std::vector<Change> changes;
  for (const auto& [key, was_stored] : touched_) {
    auto it = blocks_.find(key);
    if (it != blocks_.end()) {
      changes.push_back({key, true, it->second});
    } else if (was_stored) {
      changes.push_back({key, false, {}});
    }
  }
  touched_.clear();
  return changes;
}

}  // namespace lull::aggregate
