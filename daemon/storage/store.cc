#include "daemon/storage/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "daemon/storage/schema.h"

namespace lull::storage {
namespace {

// A lock on a file beside the database: SQLite's own locks come and go with
// transactions, while the writer's memory stands for the database as a whole.
absl::StatusOr<UniqueFd> LockDatabase(const std::string& path) {
  std::string lock = absl::StrCat(path, ".lock");
  UniqueFd fd(open(lock.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd) {
    return ErrnoStatus(errno,
                       absl::StrCat("cannot open ", lock,
                                    ", the lock of the database; make its folder "
                                    "writable, or choose another with --database"));
  }
  if (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    char text[32] = {};
    ssize_t size = pread(fd.get(), text, sizeof(text) - 1, 0);
    return absl::FailedPreconditionError(absl::StrCat(
        "another lulld (pid ", size > 0 ? text : "unknown", ") uses the database ",
        path, "; stop it, or choose another file with --database"));
  }
  std::string pid = absl::StrCat(getpid());
  if (ftruncate(fd.get(), 0) != 0 ||
      pwrite(fd.get(), pid.data(), pid.size(), 0) != static_cast<ssize_t>(pid.size())) {
    return ErrnoStatus(errno, absl::StrCat("cannot write ", lock));
  }
  return fd;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Store>> Store::Open(const std::string& path) {
  LULL_ASSIGN_OR_RETURN(UniqueFd lock, LockDatabase(path));
  LULL_ASSIGN_OR_RETURN(std::unique_ptr<Database> db, OpenForWriting(path));
  std::unique_ptr<Store> store(new Store(std::move(lock), std::move(db)));
  store->writer().KeepReserve();
  return store;
}

absl::StatusOr<std::unique_ptr<StoreReader>> Store::NewReader() {
  LULL_ASSIGN_OR_RETURN(std::unique_ptr<Database> db, OpenForReading(path_));
  // One read transaction: every answer of this reader is about the same commit.
  LULL_RETURN_IF_ERROR(db->Script("BEGIN"));
  return std::make_unique<StoreReader>(std::move(db));
}

}  // namespace lull::storage
