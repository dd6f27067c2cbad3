// The events of a process, all rings merged.
#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/storage/collect.h"
#include "daemon/storage/sqlite_reader.h"

namespace lull::storage {
namespace {

using aggregate::Event;

// Where one ring stands; holds one block of it in memory.
struct Cursor {
  std::vector<std::pair<uint64_t, int64_t>> blocks;  // first position, id
  size_t next_block = 0;
  std::vector<Event> events;
  size_t next = 0;

  bool block_is_done() const { return next == events.size(); }
  uint64_t end_ns() const { return events[next].start_ns + events[next].duration_ns; }
};

}  // namespace

absl::Status SqliteReader::Events(int64_t process, uint64_t begin_ns, uint64_t end_ns,
                                  const EventCallback& callback) {
  std::map<uint32_t, Cursor> cursors;  // by ring
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT ring, first_position, id FROM blocks WHERE process=? AND max_ns>=? AND "
      "min_ns<?",
      [&cursors](const Row& row) {
        cursors[row.Uint32(0)].blocks.emplace_back(row.Uint(1), row.Int(2));
      },
      process, Clamp(begin_ns), Clamp(end_ns)));

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
            decoded = decoder_.Decode(row.Bytes(0), cursor.events);
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

}  // namespace lull::storage
