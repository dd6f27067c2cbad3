// Training steps: both sides of their table.
#include <algorithm>

#include "daemon/base/status.h"
#include "daemon/storage/collect.h"
#include "daemon/storage/sqlite_reader.h"
#include "daemon/storage/sqlite_writer.h"

namespace lull::storage {
namespace {

constexpr uint64_t kTidyPeriod = 1000;  // steps

StepRow ReadStep(const Row& r) {
  StepRow row;
  row.number = r.Uint(0);
  row.source = r.Enum<lull::v1::StepSource>(1);
  row.start_ns = r.Uint(2);
  row.end_ns = r.Uint(3);
  row.traced = r.Uint32(4) != 0;
  for (int part = 0; part < static_cast<int>(row.part_ns.size()); ++part) {
    row.part_ns[static_cast<size_t>(part)] = r.Uint(5 + part);
  }
  return row;
}

}  // namespace

absl::StatusOr<std::vector<StepRow>> SqliteReader::Steps(int64_t process,
                                                         uint64_t begin_ns,
                                                         uint64_t end_ns,
                                                         uint32_t limit) {
  LULL_ASSIGN_OR_RETURN(
      auto rows,
      Collect<StepRow>(
          db_,
          "SELECT number, source, start_ns, end_ns, traced, kernel_ns, memcpy_ns,"
          "memset_ns, communication_ns, runtime_ns, data_ns, host_ns FROM steps "
          "WHERE process=? AND end_ns>? AND start_ns<? ORDER BY number DESC LIMIT ?",
          ReadStep, process, Clamp(begin_ns), Clamp(end_ns),
          limit == 0 ? int64_t{-1} : int64_t{limit}));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::StatusOr<std::vector<StepRow>> SqliteReader::FirstSteps(int64_t process,
                                                              uint64_t limit) {
  return Collect<StepRow>(
      db_,
      "SELECT number, source, start_ns, end_ns, traced, kernel_ns, memcpy_ns,"
      "memset_ns, communication_ns, runtime_ns, data_ns, host_ns FROM steps "
      "WHERE process=? ORDER BY number LIMIT ?",
      ReadStep, process, limit);
}

absl::Status SqliteWriter::PutStep(int64_t process, const StepRow& row) {
  LULL_RETURN_IF_ERROR(db_->Execute(
      "REPLACE INTO steps VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)", process, row.number,
      static_cast<uint32_t>(row.source), row.start_ns, row.end_ns,
      static_cast<uint32_t>(row.traced), row.part_ns[0], row.part_ns[1], row.part_ns[2],
      row.part_ns[3], row.part_ns[4], row.part_ns[5], row.part_ns[6]));
  if (row.number < kMostSteps || row.number % kTidyPeriod != 0) return absl::OkStatus();
  return db_->Execute("DELETE FROM steps WHERE process=? AND number<? AND number>?",
                      process, row.number - kMostSteps, kFirstSteps);
}

}  // namespace lull::storage
