// Deleting jobs, a little at a time, so that ingest and queries hardly notice.
#include <fcntl.h>
#include <unistd.h>

#include <string>

#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/storage/sqlite_writer.h"

namespace lull::storage {
namespace {

// Rows per step: about 10 ms of work.
constexpr int kStepRows = 64;
constexpr int kVacuumPages = 512;
constexpr off_t kReserveBytes = 4 << 20;

}  // namespace

void SqliteWriter::UseReserve() { unlink(ReservePath().c_str()); }

void SqliteWriter::KeepReserve() {
  UniqueFd file(open(ReservePath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || posix_fallocate(file.get(), 0, kReserveBytes) == 0) return;
  UseReserve();
}

absl::Status SqliteWriter::MarkForDeletion(int64_t job) {
  return db_->Execute("UPDATE jobs SET deleting=1 WHERE id=?", job);
}

absl::StatusOr<bool> SqliteWriter::DeleteSome() {
  int64_t job = 0;
  LULL_RETURN_IF_ERROR(db_->Query("SELECT id FROM jobs WHERE deleting=1 LIMIT 1",
                                  [&](const Row& row) { job = row.Int(0); }));
  if (job == 0) return false;
  LULL_RETURN_IF_ERROR(Begin());
  absl::StatusOr<bool> more = DeleteSomeOf(job);
  if (!more.ok()) {
    Rollback();
    return more;
  }
  LULL_RETURN_IF_ERROR(Commit());
  LULL_RETURN_IF_ERROR(db_->Script(
      ("PRAGMA incremental_vacuum(" + std::to_string(kVacuumPages) + ")").c_str()));
  return true;
}

// True while something of the job is left.
absl::StatusOr<bool> SqliteWriter::DeleteSomeOf(int64_t job) {
  int64_t process = 0;
  LULL_RETURN_IF_ERROR(db_->Query(
      "SELECT id FROM processes WHERE job=? LIMIT 1",
      [&](const Row& row) { process = row.Int(0); }, job));
  if (process == 0) {
    for (const char* sql :
         {"DELETE FROM apis WHERE job=?", "DELETE FROM frames WHERE job=?",
          "DELETE FROM stacks WHERE job=?", "DELETE FROM sites WHERE job=?",
          "DELETE FROM kernel_names WHERE job=?", "DELETE FROM kernels WHERE job=?",
          "DELETE FROM gpu_streams WHERE job=?", "DELETE FROM stretches WHERE job=?",
          "DELETE FROM jobs WHERE id=?"}) {
      LULL_RETURN_IF_ERROR(db_->Execute(sql, job));
    }
    return false;
  }
  int64_t deleted = 0;
  for (const char* sql : {"DELETE FROM blocks WHERE id IN (SELECT id FROM blocks WHERE "
                          "process=? LIMIT ?)",
                          "DELETE FROM cells WHERE rowid IN (SELECT rowid FROM cells "
                          "WHERE process=? LIMIT ?)"}) {
    LULL_RETURN_IF_ERROR(db_->Execute(sql, process, kStepRows));
    LULL_ASSIGN_OR_RETURN(int64_t changed, db_->Value("SELECT changes()"));
    deleted += changed;
  }
  if (deleted > 0) return true;
  for (const char* sql :
       {"DELETE FROM rings WHERE process=?", "DELETE FROM refs WHERE process=?",
        "DELETE FROM series WHERE process=?", "DELETE FROM live_blocks WHERE process=?",
        "DELETE FROM gpu_devices WHERE process=?",
        "DELETE FROM tracing WHERE process=?", "DELETE FROM non_finite WHERE process=?",
        "DELETE FROM steps WHERE process=?", "DELETE FROM step_memory WHERE process=?",
        "DELETE FROM processes WHERE id=?"}) {
    LULL_RETURN_IF_ERROR(db_->Execute(sql, process));
  }
  return true;
}

}  // namespace lull::storage
