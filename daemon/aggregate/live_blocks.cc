#include "daemon/aggregate/live_blocks.h"

#include <algorithm>

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
  if (std::optional<uint64_t> freed = TakeEarly(key, now)) {
    event.flags |= kFlagFreedEarlier;
    event.released_bytes = *freed - now;
    return;
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
  std::vector<uint64_t>& times = early_frees_[key];
  times.insert(std::upper_bound(times.begin(), times.end(), at_ns), at_ns);
  early_order_.push_back({key, at_ns});
  while (early_order_.size() > kMaxEarlyFrees ||
         early_order_.front().at_ns + kEarlyFreeNs < at_ns) {
    const EarlyFree& oldest = early_order_.front();
    auto it = early_frees_.find(oldest.key);
    if (it != early_frees_.end()) {
      auto time = std::find(it->second.begin(), it->second.end(), oldest.at_ns);
      if (time != it->second.end()) it->second.erase(time);
      if (it->second.empty()) early_frees_.erase(it);
    }
    early_order_.pop_front();
  }
}

// The first free after `now`. Those before it were for blocks that this one follows.
std::optional<uint64_t> LiveBlocks::TakeEarly(const BlockKey& key, uint64_t now) {
  auto it = early_frees_.find(key);
  if (it == early_frees_.end()) return std::nullopt;
  std::vector<uint64_t>& times = it->second;
  auto next = std::lower_bound(times.begin(), times.end(), now);
  std::optional<uint64_t> found;
  if (next != times.end() && *next - now <= kEarlyFreeNs) found = *next++;
  times.erase(times.begin(), next);
  if (times.empty()) early_frees_.erase(it);
  return found;
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
