// Writes changes of cells into the buckets of all levels, and keeps the chunks that
// it last touched in memory: those of "now" change with every commit.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "daemon/aggregate/buckets.h"
#include "daemon/aggregate/cell.h"
#include "daemon/base/check.h"
#include "daemon/storage/store.h"

namespace lull::collector {

// What happened since the last flush: for each bucket of level 0 and series.
class CellChanges {
 public:
  // The reference is valid until the next call.
  aggregate::Cell& At(uint64_t bucket, uint32_t series) {
    LULL_CHECK(series >> kSeriesBits == 0 && bucket >> (64 - kSeriesBits) == 0,
               "a cell would be that of another series");
    // As many as last time, before it grows step by step; nothing for who is idle.
    if (cells_.empty()) cells_.reserve(usual_);
    return cells_[bucket << kSeriesBits | series];
  }
  bool empty() const { return cells_.empty(); }

  static constexpr int kSeriesBits = 24;

 private:
  friend class CellCache;
  void Clear() {
    usual_ = cells_.size();
    cells_.clear();
  }

  absl::flat_hash_map<uint64_t, aggregate::Cell> cells_;
  size_t usual_ = 0;
};

// Belongs to one process. Not thread-safe.
class CellCache {
 public:
  // The store has cells of the process that were written before. Of a new one it is
  // asked only for what this has written and forgotten since.
  void SetStoredBefore() { maybe_stored_.fill(UINT64_MAX); }
  // Adds `changes` to the stored cells and leaves it empty. After an error the cache
  // knows more than the store: throw it away.
  absl::Status Flush(CellChanges& changes, int64_t process,
                     storage::StoreWriter& writer);

 private:
  struct Entry {
    storage::CellChunk cells;
    bool dirty = false;
    uint64_t used = 0;  // the latest flush that touched it
  };
  // Chunks have 4.5 KiB, and each second begins new ones: those go that the latest
  // flushes left alone. If there are too many all the same, the latest one counts.
  static constexpr uint64_t kKeptFlushes = 3;
  static constexpr size_t kMaxChunks = 512;
  static constexpr size_t kMaxDirty = 8192;

  absl::StatusOr<Entry*> Find(const storage::ChunkKey& key,
                              storage::StoreReader& reader);
  static absl::Status Write(std::vector<std::pair<storage::ChunkKey, Entry*>>& dirty,
                            storage::StoreWriter& writer);

  void Forget(uint64_t flushes);

  // By level: chunks of buckets below may be in the store and not here.
  std::array<uint64_t, aggregate::kBucketLevels> maybe_stored_{};
  absl::flat_hash_map<storage::ChunkKey, std::unique_ptr<Entry>> entries_;
  uint64_t flushes_ = 0;
};

}  // namespace lull::collector
