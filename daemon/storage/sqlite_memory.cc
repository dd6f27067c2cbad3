// Memory at the end of steps: both sides of its table.
#include <string>
#include <string_view>

#include "daemon/base/status.h"
#include "daemon/storage/collect.h"
#include "daemon/storage/sqlite_reader.h"
#include "daemon/storage/sqlite_writer.h"
#include "daemon/storage/varint.h"

namespace lull::storage {
namespace {

std::vector<std::pair<uint32_t, int64_t>> ReadLive(std::string_view bytes) {
  std::vector<std::pair<uint32_t, int64_t>> live;
  uint64_t series = 0;
  uint64_t value = 0;
  while (!bytes.empty() && TakeVarint(bytes, series) && TakeVarint(bytes, value)) {
    live.emplace_back(static_cast<uint32_t>(series), UnZigZag(value));
  }
  return live;
}

}  // namespace

absl::StatusOr<std::vector<StepMemoryRow>> SqliteReader::StepMemory(int64_t process) {
  return Collect<StepMemoryRow>(
      db_,
      "SELECT ordinal, step, end_ns, live FROM step_memory WHERE process=? "
      "ORDER BY ordinal",
      [](const Row& r) {
        return StepMemoryRow{r.Uint(0), r.Uint(1), r.Uint(2), ReadLive(r.Bytes(3))};
      },
      process);
}

absl::Status SqliteWriter::PutStepMemory(int64_t process, const StepMemoryRow& row) {
  std::string live;
  for (const auto& [series, bytes] : row.live) {
    PutVarint(live, series);
    PutVarint(live, ZigZag(bytes));
  }
  return db_->Execute("REPLACE INTO step_memory VALUES(?,?,?,?,?)", process,
                      row.ordinal, row.step, row.end_ns, Blob{live});
}

absl::Status SqliteWriter::ThinStepMemory(int64_t process, uint64_t stride) {
  return db_->Execute("DELETE FROM step_memory WHERE process=? AND ordinal % ? <> 0",
                      process, stride);
}

}  // namespace lull::storage
