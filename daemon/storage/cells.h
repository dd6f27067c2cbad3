// The cells of processes, 64 series of a bucket together. Not thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/aggregate/cell.h"
#include "daemon/storage/database.h"

namespace lull::storage {

// Cells are stored for this many series at once, see ChunkKey.
inline constexpr uint32_t kChunkSeries = 64;
using CellChunk = std::array<aggregate::Cell, kChunkSeries>;

// The cells of series [index * kChunkSeries, ...) of one process in one bucket.
struct ChunkKey {
  int64_t process = 0;
  uint32_t level = 0;
  uint64_t bucket = 0;
  uint32_t index = 0;
  friend bool operator==(const ChunkKey&, const ChunkKey&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ChunkKey& k) {
    return H::combine(std::move(h), k.process, k.level, k.bucket, k.index);
  }
};

class Cells {
 public:
  explicit Cells(Database& db) : db_(db) {}

  // False when nothing is stored under `key`; `chunk` is empty then.
  absl::StatusOr<bool> Find(const ChunkKey& key, CellChunk& chunk) const;
  // Calls back with every cell that is not empty of buckets [first, end), ordered by
  // bucket.
  using Callback = absl::FunctionRef<void(uint32_t series, const aggregate::Cell&)>;
  absl::Status Read(int64_t process, uint32_t level, uint64_t first, uint64_t end,
                    Callback callback) const;
  // The same, with the bucket of each cell.
  using BucketCallback =
      absl::FunctionRef<void(uint64_t bucket, uint32_t series, const aggregate::Cell&)>;
  absl::Status ReadBuckets(int64_t process, uint32_t level, uint64_t first,
                           uint64_t end, BucketCallback callback) const;
  // The same for one series alone; says the bucket of each cell.
  using SeriesCallback =
      absl::FunctionRef<void(uint64_t bucket, const aggregate::Cell&)>;
  absl::Status ReadSeries(int64_t process, uint32_t series, uint32_t level,
                          uint64_t first, uint64_t end, SeriesCallback callback) const;

  absl::Status Put(const ChunkKey& key, const CellChunk& chunk);
  // At most `limit` chunks of a process; returns how many.
  absl::StatusOr<int64_t> DeleteSome(int64_t process, int limit);

 private:
  Database& db_;
};

}  // namespace lull::storage
