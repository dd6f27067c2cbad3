// The transaction, and deleting jobs a little at a time, so that ingest and queries
// hardly notice.
#include <fcntl.h>
#include <unistd.h>

#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/storage/store.h"

namespace lull::storage {
namespace {

// Rows per step: about 10 ms of work.
constexpr int kStepRows = 64;
constexpr char kVacuum[] = "PRAGMA incremental_vacuum(512)";  // pages
constexpr off_t kReserveBytes = 4 << 20;

}  // namespace

absl::Status StoreWriter::Begin() { return db_->Execute("BEGIN IMMEDIATE"); }

absl::Status StoreWriter::Commit() {
  absl::Status status = db_->Execute("COMMIT");
  if (!status.ok()) Rollback();
  return status;
}

void StoreWriter::Rollback() {
  // SQLite rolls back by itself on some errors, for example on a full disk.
  if (db_->in_transaction()) (void)db_->Execute("ROLLBACK");
}

absl::StatusOr<uint64_t> StoreWriter::UsedBytes() {
  LULL_ASSIGN_OR_RETURN(int64_t pages, db_->Value("PRAGMA page_count"));
  LULL_ASSIGN_OR_RETURN(int64_t free, db_->Value("PRAGMA freelist_count"));
  LULL_ASSIGN_OR_RETURN(int64_t size, db_->Value("PRAGMA page_size"));
  return static_cast<uint64_t>((pages - free) * size);
}

void StoreWriter::UseReserve() { unlink(ReservePath().c_str()); }

void StoreWriter::KeepReserve() {
  UniqueFd file(open(ReservePath().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!file || posix_fallocate(file.get(), 0, kReserveBytes) == 0) return;
  UseReserve();
}

absl::StatusOr<bool> StoreWriter::DeleteSome() {
  LULL_ASSIGN_OR_RETURN(int64_t job, catalogue_.JobToDelete());
  if (job == 0) return false;
  LULL_RETURN_IF_ERROR(Begin());
  absl::Status status = DeleteSomeOf(job);
  if (!status.ok()) {
    Rollback();
    return status;
  }
  LULL_RETURN_IF_ERROR(Commit());
  LULL_RETURN_IF_ERROR(db_->Script(kVacuum));
  return true;
}

absl::Status StoreWriter::DeleteSomeOf(int64_t job) {
  LULL_ASSIGN_OR_RETURN(int64_t process, catalogue_.AnyProcess(job));
  if (process == 0) return catalogue_.DeleteJob(job);
  LULL_ASSIGN_OR_RETURN(int64_t blocks, events_.DeleteSome(process, kStepRows));
  LULL_ASSIGN_OR_RETURN(int64_t chunks, cells_.DeleteSome(process, kStepRows));
  return blocks + chunks > 0 ? absl::OkStatus() : catalogue_.DeleteProcess(process);
}

}  // namespace lull::storage
