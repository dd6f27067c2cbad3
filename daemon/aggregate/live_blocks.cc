#include "daemon/aggregate/live_blocks.h"

#include <algorithm>
#include <utility>

#include "daemon/aggregate/accumulate_memory.h"

namespace lull::aggregate {

void LiveBlocks::Apply(const Series& series, Event& event) {
  auto allocator = static_cast<uint8_t>(AllocatorOf(series));
  if (series.type == EventType::kTorchReserved) {
    allocator |= kReservedBit;
    BlockKey key{allocator, static_cast<uint64_t>(ReservedView{event}.device())};
    auto known = blocks_.find(key);
    if (known != blocks_.end() && known->second.since_ns > event.start_ns) {
      event.flags |= kFlagFreedEarlier;  // another thread's ring was faster
      return;
    }
    return Allocate(key, event);
  }
  const BlockKey before{static_cast<uint8_t>(allocator | kBeforeBit),
                        ShapeOf(series.type, event)};
  if (IsBefore(series)) return Allocate(before, event);
  const uint64_t address = MemoryView{event}.address();
  if (IsFailed(series) || address == 0) return;
  BlockKey key{allocator, address};
  if (IsFree(series)) {
    Free(key, before, event);
  } else {
    Allocate(key, event);
  }
}

std::vector<Event> LiveBlocks::Forget(
    uint64_t before_ns, Forgets what,
    absl::FunctionRef<bool(uint32_t series)> is_drawn) {
  absl::flat_hash_map<std::pair<uint32_t, uint64_t>, Event> sums;
  for (auto it = blocks_.begin(); it != blocks_.end();) {
    auto [key, block] = *it;
    auto here = it++;
    if ((key.allocator & kReservedBit) != 0 || block.since_ns >= before_ns) continue;
    const auto allocator = static_cast<Allocator>(key.allocator & kAllocatorMask);
    if (what == Forgets::kTensors &&
        (allocator == Allocator::kCuda || allocator == Allocator::kPinned)) {
      continue;
    }
    const uint64_t size = is_drawn(block.series) ? block.bytes : 0;
    Event& event = sums[{block.series, size}];
    event.start_ns = before_ns;
    event.released_series = block.series;
    event.released_bytes += block.bytes;
    if ((key.allocator & kBeforeBit) == 0) {
      ForgottenView{event}.set_blocks(ForgottenView{event}.blocks() + 1);
    }
    Touch(key, true);
    blocks_.erase(here);
  }
  std::vector<Event> events;
  for (const auto& [key, event] : sums) events.push_back(event);
  return events;
}

void LiveBlocks::Allocate(const BlockKey& key, Event& event) {
  uint64_t now = MemoryOrderNs(event);
  if (std::optional<Early> freed = TakeEarly(key, now)) {
    event.flags |= kFlagFreedEarlier;
    event.released_bytes = freed->at_ns - now;
    auto before = blocks_.find(freed->before);
    if (freed->taken == MemoryView{event}.bytes() && before != blocks_.end()) {
      event.released_series = before->second.series;
      before->second.bytes += freed->taken;
      Touch(freed->before, true);
    }
    return;
  }
  auto [it, fresh] = blocks_.try_emplace(key);
  Touch(key, !fresh);
  if (!fresh) {  // its free was lost, or is still on its way
    event.released_series = it->second.series;
    event.released_bytes = it->second.bytes;
  }
  it->second = LiveBlock{event.series, MemoryView{event}.bytes(), now};
}

void LiveBlocks::Free(const BlockKey& key, const BlockKey& before, Event& event) {
  auto it = blocks_.find(key);
  if (it == blocks_.end()) {
    return RememberEarly(key, {event.start_ns, TakeFromBefore(before, event), before});
  }
  // The block is younger than this free: the free was for its predecessor, which
  // the younger block has ended already.
  if (it->second.since_ns > event.start_ns) return;
  event.released_series = it->second.series;
  event.released_bytes = it->second.bytes;
  Touch(key, true);
  blocks_.erase(it);
}

// The bytes that the free has taken from there: its own, or none.
uint64_t LiveBlocks::TakeFromBefore(const BlockKey& before, Event& event) {
  const uint64_t bytes = MemoryView{event}.bytes();
  auto it = blocks_.find(before);
  if (it == blocks_.end() || bytes == 0 || it->second.bytes < bytes ||
      it->second.since_ns > event.start_ns) {
    return 0;
  }
  it->second.bytes -= bytes;
  Touch(before, true);
  event.released_series = it->second.series;
  event.released_bytes = bytes;
  return bytes;
}

void LiveBlocks::RememberEarly(const BlockKey& key, const Early& early) {
  auto by_time = [](uint64_t at_ns, const Early& other) { return at_ns < other.at_ns; };
  std::vector<Early>& times = early_frees_[key];
  times.insert(std::upper_bound(times.begin(), times.end(), early.at_ns, by_time),
               early);
  early_order_.push_back({key, early.at_ns});
  while (early_order_.size() > kMaxEarlyFrees ||
         early_order_.front().at_ns + kEarlyFreeNs < early.at_ns) {
    const EarlyFree& oldest = early_order_.front();
    auto it = early_frees_.find(oldest.key);
    if (it != early_frees_.end()) {
      auto time =
          std::find_if(it->second.begin(), it->second.end(),
                       [&](const Early& other) { return other.at_ns == oldest.at_ns; });
      if (time != it->second.end()) it->second.erase(time);
      if (it->second.empty()) early_frees_.erase(it);
    }
    early_order_.pop_front();
  }
}

// The first free after `now`. Those before it were for blocks that this one follows.
std::optional<LiveBlocks::Early> LiveBlocks::TakeEarly(const BlockKey& key,
                                                       uint64_t now) {
  auto it = early_frees_.find(key);
  if (it == early_frees_.end()) return std::nullopt;
  std::vector<Early>& times = it->second;
  auto next = std::lower_bound(
      times.begin(), times.end(), now,
      [](const Early& early, uint64_t at_ns) { return early.at_ns < at_ns; });
  std::optional<Early> found;
  if (next != times.end() && next->at_ns - now <= kEarlyFreeNs) found = *next++;
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
