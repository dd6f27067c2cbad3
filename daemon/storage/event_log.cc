// Blocks are written small as batches come in, then merged into large ones. An event is
// compressed twice in its life, and costs what it costs in a large block.
#include "daemon/storage/event_log.h"

#include <algorithm>
#include <map>
#include <queue>
#include <string>
#include <tuple>
#include <utility>

#include "daemon/base/check.h"
#include "daemon/base/status.h"
#include "daemon/storage/columns.h"

namespace lull::storage {
namespace {

using aggregate::Event;

// A block with this many events stays as it is.
constexpr size_t kFullBlockEvents = kMaxBlockEvents / 2;
// So many small blocks of one ring are merged even if they hold fewer events.
constexpr int64_t kMaxSmallBlocks = 32;
constexpr int64_t kAllRings = -1;

// Where one ring stands; holds one block of it in memory.
struct Cursor {
  std::vector<std::pair<uint64_t, int64_t>> blocks;  // first position, id
  size_t next_block = 0;
  std::vector<Event> events;
  size_t next = 0;

  bool block_is_done() const { return next == events.size(); }
  uint64_t end_ns() const { return events[next].start_ns + events[next].duration_ns; }
};

// All but the data.
PackedBlock Described(uint64_t first_position, const Event* events, size_t count) {
  auto by_start = [](const Event& a, const Event& b) {
    return a.start_ns < b.start_ns;
  };
  auto [low, high] = std::minmax_element(events, events + count, by_start);
  return {first_position, count, low->start_ns, high->start_ns, {}};
}

}  // namespace

PackedBlock PackBlock(uint64_t first_position, const std::vector<Event>& events,
                      BlockEncoder& encoder) {
  LULL_CHECK(events.size() == kMaxBlockEvents, "a block that is not full may grow");
  PackedBlock block = Described(first_position, events.data(), events.size());
  block.data = encoder.Encode(events.data(), events.size());
  return block;
}

absl::Status EventLog::Read(int64_t process, uint64_t begin_ns, uint64_t end_ns,
                            Callback callback) const {
  return ReadRings(process, kAllRings, begin_ns, end_ns, callback);
}

absl::Status EventLog::ReadRing(int64_t process, uint32_t ring, uint64_t begin_ns,
                                uint64_t end_ns, Callback callback) const {
  return ReadRings(process, ring, begin_ns, end_ns, callback);
}

absl::StatusOr<uint64_t> EventLog::Count(int64_t process, uint32_t ring) const {
  uint64_t count = 0;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT coalesce(sum(count), 0) FROM blocks WHERE process=? AND ring=?",
      [&count](const Row& row) { count = row.Uint(0); }, process, ring));
  return count;
}

absl::StatusOr<double> EventLog::Estimate(int64_t process, uint64_t begin_ns,
                                          uint64_t end_ns) const {
  double count = 0;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT total((min(max_ns + 1.0, ?3) - max(min_ns, ?2)) / (max_ns + 1.0 - "
      "min_ns) "
      "* count) FROM blocks WHERE process=?1 AND max_ns>=?2 AND min_ns<?3",
      [&count](const Row& row) { count = row.Real(0); }, process, Clamp(begin_ns),
      Clamp(end_ns)));
  return count;
}

absl::Status EventLog::ReadRings(int64_t process, int64_t ring, uint64_t begin_ns,
                                 uint64_t end_ns, Callback callback) const {
  std::map<uint32_t, Cursor> cursors;  // by ring
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT ring, first_position, id FROM blocks WHERE process=? AND max_ns>=? AND "
      "min_ns<? AND ring BETWEEN ? AND ?",
      [&cursors](const Row& row) {
        cursors[row.Uint32(0)].blocks.emplace_back(row.Uint(1), row.Int(2));
      },
      process, Clamp(begin_ns), Clamp(end_ns), ring == kAllRings ? 0 : ring,
      ring == kAllRings ? int64_t{UINT32_MAX} : ring));

  // Makes the next event in range the current one; false when there is none.
  absl::Status status;
  auto advance = [&](Cursor& cursor) {
    while (true) {
      while (!cursor.block_is_done()) {
        const Event& event = cursor.events[cursor.next];
        if (event.start_ns >= begin_ns && event.start_ns < end_ns) return true;
        ++cursor.next;
      }
      cursor.events.clear();
      cursor.next = 0;
      if (cursor.next_block == cursor.blocks.size()) return false;
      absl::Status decoded;
      status = db_.Query(
          "SELECT data FROM blocks WHERE id=?",
          [&](const Row& row) {
            decoded = decoder_.Decode(row.Bytes(0), &cursor.events);
          },
          cursor.blocks[cursor.next_block++].second);
      if (status.ok() && !decoded.ok()) {
        status = CorruptDatabase(db_.path(), std::string(decoded.message()));
      }
      if (!status.ok()) return false;
    }
  };

  using Turn = std::tuple<uint64_t, uint32_t, Cursor*>;  // end, ring
  std::priority_queue<Turn, std::vector<Turn>, std::greater<>> turns;
  for (auto& [ring, cursor] : cursors) {
    std::sort(cursor.blocks.begin(), cursor.blocks.end());
    if (advance(cursor)) turns.emplace(cursor.end_ns(), ring, &cursor);
    LULL_RETURN_IF_ERROR(status);
  }
  while (!turns.empty()) {
    auto [end, ring, cursor] = turns.top();
    turns.pop();
    bool more = true;
    // For as long as it is still this ring's turn.
    do {
      callback(cursor->events[cursor->next++]);
      more = advance(*cursor);
      LULL_RETURN_IF_ERROR(status);
    } while (more && (turns.empty() || cursor->end_ns() <= std::get<0>(turns.top())));
    if (more) turns.emplace(cursor->end_ns(), ring, cursor);
  }
  return absl::OkStatus();
}

absl::Status EventLog::PutBlock(const ProcessRow& process, uint32_t ring,
                                uint64_t first_position, const Event* events,
                                size_t count) {
  return PutBlock(process, ring, Described(first_position, events, count),
                  encoder_.Encode(events, count));
}

absl::Status EventLog::PutBlock(const ProcessRow& process, uint32_t ring,
                                const PackedBlock& block, std::string_view data) {
  return db_.Execute(
      "INSERT INTO blocks(job, process, ring, first_position, count, min_ns, max_ns, "
      "small,data) VALUES(?,?,?,?,?,?,?,?,?)",
      process.job, process.id, ring, block.first_position, block.count, block.min_ns,
      block.max_ns, block.count < kFullBlockEvents, Blob{data});
}

absl::Status EventLog::Append(const ProcessRow& process, uint32_t ring,
                              const PackedBlock& block) {
  return PutBlock(process, ring, block, block.data);
}

absl::Status EventLog::Append(const ProcessRow& process, uint32_t ring,
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
  LULL_RETURN_IF_ERROR(db_.Query(
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

absl::Status EventLog::MergeSmallBlocks(const ProcessRow& process, uint32_t ring) {
  // Runs of blocks without a gap between them; a gap is what the relay had to drop.
  struct Run {
    uint64_t first = 0;
    std::vector<Event> events;
    std::vector<int64_t> ids;
  };
  std::vector<Run> runs;
  absl::Status decoded;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT id, first_position, count, data FROM blocks WHERE small AND process=? "
      "AND ring=? ORDER BY first_position",
      [&](const Row& row) {
        uint64_t first = row.Uint(1);
        bool fits = !runs.empty() &&
                    runs.back().first + runs.back().events.size() == first &&
                    runs.back().events.size() + row.Uint(2) <= kMaxBlockEvents;
        if (!fits) runs.push_back({first, {}, {}});
        runs.back().ids.push_back(row.Int(0));
        absl::Status status = decoder_.Decode(row.Bytes(3), &runs.back().events);
        if (!status.ok()) decoded = status;
      },
      process.id, ring));
  LULL_RETURN_IF_ERROR(decoded);
  for (const Run& run : runs) {
    for (int64_t id : run.ids) {
      LULL_RETURN_IF_ERROR(db_.Execute("DELETE FROM blocks WHERE id=?", id));
    }
    LULL_RETURN_IF_ERROR(
        PutBlock(process, ring, run.first, run.events.data(), run.events.size()));
    if (&run == &runs.back()) break;
    // What another block follows after a gap can grow no more.
    LULL_RETURN_IF_ERROR(
        db_.Execute("UPDATE blocks SET small=0 WHERE id=?", db_.last_insert_id()));
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> EventLog::DeleteSome(int64_t process, int limit) {
  LULL_RETURN_IF_ERROR(db_.Execute(
      "DELETE FROM blocks WHERE id IN (SELECT id FROM blocks WHERE process=? LIMIT ?)",
      process, limit));
  return db_.Value("SELECT changes()");
}

}  // namespace lull::storage
