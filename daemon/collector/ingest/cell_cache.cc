#include "daemon/collector/ingest/cell_cache.h"

#include <algorithm>
#include <vector>

#include "daemon/aggregate/buckets.h"
#include "daemon/base/status.h"

namespace lull::collector {

using storage::ChunkKey;
using storage::kChunkSeries;

absl::StatusOr<CellCache::Entry*> CellCache::Find(const ChunkKey& key,
                                                  storage::StoreReader& reader) {
  std::unique_ptr<Entry>& entry = entries_[key];
  if (entry == nullptr) {
    entry = std::make_unique<Entry>();
    if (key.bucket < maybe_stored_[key.level]) {
      LULL_RETURN_IF_ERROR(reader.cells().Find(key, entry->cells).status());
    }
  }
  entry->used = flushes_;
  return entry.get();
}

absl::Status CellCache::Write(std::vector<std::pair<ChunkKey, Entry*>>& dirty,
                              storage::StoreWriter& writer) {
  for (auto& [key, entry] : dirty) {
    LULL_RETURN_IF_ERROR(writer.cells().Put(key, entry->cells));
    entry->dirty = false;
  }
  dirty.clear();
  return absl::OkStatus();
}

absl::Status CellCache::Flush(CellChanges& changes, int64_t process,
                              storage::StoreWriter& writer) {
  ++flushes_;
  // In the order of time, so that peaks add up as they happened.
  std::vector<std::pair<uint64_t, const aggregate::Cell*>> order;
  order.reserve(changes.cells_.size());
  for (const auto& [key, cell] : changes.cells_) order.emplace_back(key, &cell);
  std::sort(order.begin(), order.end());
  std::vector<std::pair<ChunkKey, Entry*>> dirty;
  // In this order a change mostly lies in the chunks of the one before.
  std::array<std::pair<ChunkKey, Entry*>, aggregate::kBucketLevels> latest{};
  for (const auto& [packed, change] : order) {
    uint64_t bucket = packed >> CellChanges::kSeriesBits;
    auto series =
        static_cast<uint32_t>(packed & ((1u << CellChanges::kSeriesBits) - 1));
    for (uint32_t level = 0; level < aggregate::kBucketLevels; ++level) {
      ChunkKey key{process, level, bucket >> (aggregate::kBucketShift * level),
                   series / kChunkSeries};
      auto& [latest_key, entry] = latest[level];
      if (entry == nullptr || latest_key != key) {
        LULL_ASSIGN_OR_RETURN(entry, Find(key, writer));
        latest_key = key;
      }
      entry->cells[series % kChunkSeries].Append(*change);
      if (!entry->dirty) dirty.emplace_back(key, entry);
      entry->dirty = true;
    }
    if (dirty.size() < kMaxDirty) continue;
    // A day that is judged at once touches more chunks than there is memory for.
    LULL_RETURN_IF_ERROR(Write(dirty, writer));
    latest = {};
    Forget(0);
  }
  LULL_RETURN_IF_ERROR(Write(dirty, writer));
  changes.Clear();
  Forget(kKeptFlushes);
  if (entries_.size() > kMaxChunks) Forget(1);
  return absl::OkStatus();
}

void CellCache::Forget(uint64_t flushes) {
  absl::erase_if(entries_, [this, flushes](const auto& item) {
    if (item.second->used + flushes > flushes_) return false;
    uint64_t& maybe_stored = maybe_stored_[item.first.level];
    maybe_stored = std::max(maybe_stored, item.first.bucket + 1);
    return true;
  });
}

}  // namespace lull::collector
