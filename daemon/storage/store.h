// The store: one SQLite file in WAL mode, one writer, any number of readers. What is in
// it has three parts: the catalogue, the event log and the cells.
//
// All that one call of the writer's user puts into them between Begin and Commit
// becomes visible and durable together, or not at all. Readers see the state of one
// commit for as long as they live and never wait for the writer.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/unique_fd.h"
#include "daemon/storage/catalogue.h"
#include "daemon/storage/cells.h"
#include "daemon/storage/database.h"
#include "daemon/storage/event_log.h"

namespace lull::storage {

// Not thread-safe; a reader belongs to one thread at a time.
class StoreReader {
 public:
  explicit StoreReader(std::unique_ptr<Database> db)
      : db_(std::move(db)), catalogue_(*db_), events_(*db_), cells_(*db_) {}

  const Catalogue& catalogue() const { return catalogue_; }
  const EventLog& events() const { return events_; }
  const Cells& cells() const { return cells_; }

 protected:
  std::unique_ptr<Database> db_;
  Catalogue catalogue_;
  EventLog events_;
  Cells cells_;
};

// As a reader it sees what it has put, also before the commit. Not thread-safe.
class StoreWriter : public StoreReader {
 public:
  using StoreReader::StoreReader;

  absl::Status Begin();
  absl::Status Commit();  // a failed commit is rolled back
  void Rollback();

  Catalogue& catalogue() { return catalogue_; }
  EventLog& events() { return events_; }
  Cells& cells() { return cells_; }
  Database& database() { return *db_; }

  // Retention, outside of Begin and Commit. Deletes a limited number of rows of a job
  // that Catalogue::MarkForDeletion has hidden, until nothing of any is left (false).
  absl::StatusOr<bool> DeleteSome();
  // Some bytes beside the database are kept for when the disk is full: deleting needs
  // room, too. UseReserve frees them, KeepReserve takes them again if it can.
  void UseReserve();
  void KeepReserve();
  // Bytes in use in the database; what is free inside the file does not count.
  absl::StatusOr<uint64_t> UsedBytes();

 private:
  absl::Status DeleteSomeOf(int64_t job);
  std::string ReservePath() const { return db_->path() + ".reserve"; }
};

class Store {
 public:
  // Opens or creates the database at `path`; its folder must exist. Only one process
  // writes at a time: a second one gets FAILED_PRECONDITION that names the first. See
  // OpenForWriting (schema.h) for files that are not ours or not whole.
  static absl::StatusOr<std::unique_ptr<Store>> Open(const std::string& path);

  StoreWriter& writer() { return writer_; }  // for one thread
  // Thread-safe.
  absl::StatusOr<std::unique_ptr<StoreReader>> NewReader();

 private:
  Store(UniqueFd lock, std::unique_ptr<Database> db)
      : lock_(std::move(lock)), path_(db->path()), writer_(std::move(db)) {}

  UniqueFd lock_;
  const std::string path_;
  StoreWriter writer_;
};

}  // namespace lull::storage
