#include "daemon/storage/cells.h"

#include "daemon/base/status.h"
#include "daemon/storage/cell_codec.h"
#include "daemon/storage/columns.h"

namespace lull::storage {
namespace {

absl::Status Corrupt(const Database& db) {
  return CorruptDatabase(db.path(), "a chunk of aggregates");
}

}  // namespace

absl::StatusOr<bool> Cells::Find(const ChunkKey& key, CellChunk& chunk) const {
  chunk.fill({});
  bool found = false;
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT data FROM cells WHERE process=? AND level=? AND bucket=? AND chunk=?",
      [&](const Row& row) {
        found = true;
        sound = DecodeChunk(
            row.Bytes(0),
            [&](uint32_t index, const aggregate::Cell& cell) { chunk[index] = cell; });
      },
      key.process, key.level, key.bucket, key.index));
  if (!sound) return Corrupt(db_);
  return found;
}

absl::Status Cells::Read(int64_t process, uint32_t level, uint64_t first, uint64_t end,
                         Callback callback) const {
  return ReadBuckets(process, level, first, end,
                     [&](uint64_t, uint32_t series, const aggregate::Cell& cell) {
                       callback(series, cell);
                     });
}

absl::Status Cells::ReadBuckets(int64_t process, uint32_t level, uint64_t first,
                                uint64_t end, BucketCallback callback) const {
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT bucket, chunk, data FROM cells WHERE process=? AND level=? AND "
      "bucket>=? AND bucket<? ORDER BY bucket, chunk",
      [&](const Row& row) {
        uint32_t base = row.Uint32(1) * kChunkSeries;
        sound &=
            DecodeChunk(row.Bytes(2), [&](uint32_t index, const aggregate::Cell& cell) {
              callback(row.Uint(0), base + index, cell);
            });
      },
      process, level, Clamp(first), Clamp(end)));
  return sound ? absl::OkStatus() : Corrupt(db_);
}

absl::Status Cells::ReadSeries(int64_t process, uint32_t series, uint32_t level,
                               uint64_t first, uint64_t end,
                               SeriesCallback callback) const {
  bool sound = true;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT bucket, data FROM cells WHERE process=? AND level=? AND bucket>=? AND "
      "bucket<? AND chunk=? ORDER BY bucket",
      [&](const Row& row) {
        sound &=
            DecodeChunk(row.Bytes(1), [&](uint32_t index, const aggregate::Cell& cell) {
              if (index == series % kChunkSeries) callback(row.Uint(0), cell);
            });
      },
      process, level, Clamp(first), Clamp(end), series / kChunkSeries));
  return sound ? absl::OkStatus() : Corrupt(db_);
}

absl::Status Cells::Put(const ChunkKey& key, const CellChunk& chunk) {
  return db_.Execute(
      "INSERT INTO cells VALUES(?1,?2,?3,?4,?5) "
      "ON CONFLICT(process, level, bucket, chunk) DO UPDATE SET data=?5",
      key.process, key.level, key.bucket, key.index, OwnedBlob{EncodeChunk(chunk)});
}

absl::StatusOr<int64_t> Cells::DeleteSome(int64_t process, int limit) {
  LULL_RETURN_IF_ERROR(
      db_.Execute("DELETE FROM cells WHERE rowid IN (SELECT rowid FROM cells WHERE "
                  "process=? LIMIT ?)",
                  process, limit));
  return db_.Value("SELECT changes()");
}

}  // namespace lull::storage
