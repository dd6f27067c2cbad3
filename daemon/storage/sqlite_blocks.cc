// Blocks of events: written small as batches come in, then merged into large ones.
// An event is compressed twice in its life, and costs what it costs in a large block.
#include <algorithm>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/storage/sqlite_writer.h"

namespace lull::storage {
namespace {

using aggregate::Event;

// A block with this many events stays as it is.
constexpr size_t kFullBlockEvents = kMaxBlockEvents / 2;
// So many small blocks of one ring are merged even if they hold fewer events.
constexpr int64_t kMaxSmallBlocks = 32;

}  // namespace

absl::Status SqliteWriter::PutBlock(const ProcessRow& process, uint32_t ring,
                                    uint64_t first_position, const Event* events,
                                    size_t count) {
  auto by_start = [](const Event& a, const Event& b) {
    return a.start_ns < b.start_ns;
  };
  auto [low, high] = std::minmax_element(events, events + count, by_start);
  return db_->Execute(
      "INSERT INTO blocks(job, process, ring, first_position, count, min_ns, max_ns, "
      "small,"
      "data) VALUES(?,?,?,?,?,?,?,?,?)",
      process.job, process.id, ring, first_position, count, low->start_ns,
      high->start_ns, count < kFullBlockEvents, Blob{encoder_.Encode(events, count)});
}

absl::Status SqliteWriter::AppendEvents(const ProcessRow& process, uint32_t ring,
                                        uint64_t first_position,
                                        const std::vector<Event>& events) {
  for (size_t at = 0; at < events.size(); at += kMaxBlockEvents) {
    size_t count = std::min(kMaxBlockEvents, events.size() - at);
    LULL_RETURN_IF_ERROR(
        PutBlock(process, ring, first_position + at, events.data() + at, count));
  }
  if (events.size() % kMaxBlockEvents >= kFullBlockEvents) return absl::OkStatus();
  int64_t blocks = 0;
  int64_t total = 0;
  LULL_RETURN_IF_ERROR(db_->Query(
      "SELECT count(*), sum(count) FROM blocks WHERE small AND process=? AND ring=?",
      [&](const Row& row) {
        blocks = row.Int(0);
        total = row.Int(1);
      },
      process.id, ring));
  if (blocks < kMaxSmallBlocks && total < static_cast<int64_t>(kFullBlockEvents)) {
    return absl::OkStatus();
  }
  return MergeSmallBlocks(process, ring);
}

absl::Status SqliteWriter::MergeSmallBlocks(const ProcessRow& process, uint32_t ring) {
  // Runs of blocks without a gap between them; a gap is what the relay had to drop.
  struct Run {
    uint64_t first = 0;
    std::vector<Event> events;
    std::vector<int64_t> ids;
  };
  std::vector<Run> runs;
  absl::Status decoded;
  LULL_RETURN_IF_ERROR(db_->Query(
      "SELECT id, first_position, count, data FROM blocks WHERE small AND process=? "
      "AND "
      "ring=? ORDER BY first_position",
      [&](const Row& row) {
        uint64_t first = row.Uint(1);
        bool fits = !runs.empty() &&
                    runs.back().first + runs.back().events.size() == first &&
                    runs.back().events.size() + row.Uint(2) <= kMaxBlockEvents;
        if (!fits) runs.push_back({first, {}, {}});
        runs.back().ids.push_back(row.Int(0));
        absl::Status status = decoder_.Decode(row.Bytes(3), runs.back().events);
        if (!status.ok()) decoded = status;
      },
      process.id, ring));
  LULL_RETURN_IF_ERROR(decoded);
  for (const Run& run : runs) {
    for (int64_t id : run.ids) {
      LULL_RETURN_IF_ERROR(db_->Execute("DELETE FROM blocks WHERE id=?", id));
    }
    LULL_RETURN_IF_ERROR(
        PutBlock(process, ring, run.first, run.events.data(), run.events.size()));
    if (&run == &runs.back()) break;
    // What another block follows after a gap can grow no more.
    LULL_RETURN_IF_ERROR(
        db_->Execute("UPDATE blocks SET small=0 WHERE id=?", db_->last_insert_id()));
  }
  return absl::OkStatus();
}

}  // namespace lull::storage
