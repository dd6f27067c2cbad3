// A bounded queue of batches on disk, between the rings and the collector.
//
// A batch is safe once Append() has returned: it is in the page cache, so it
// outlives this process (not the host, but neither do the rings). Files are
// append-only and begin with a checkpoint of the SpoolState, so that a file can be
// removed as soon as the collector has acknowledged what it holds.
//
//   reader thread:   Append                 (one)
//   sender thread:   WaitForNext, Acknowledge  (one)
//
// Directory: NNNNNNNN.spool, `hello` (the job, for whoever delivers it later),
// `lock` (flock: held by the worker that owns the spool), `keeper` (flock: held by the
// keeper), maps.KEY and relay.log of the worker.
// Beside it, `refused/`: batches that no collector took (refused_batches.h).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "daemon/base/unique_fd.h"
#include "daemon/relay/deliver/refused_batches.h"
#include "daemon/relay/deliver/spool_state.h"

namespace lull::relay {

class Spool {
 public:
  // Opens or makes the spool; cuts a torn end off. UNAVAILABLE when another
  // process owns it.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(const std::string& directory,
                                                     uint64_t limit_bytes);

  // What all batches so far add up to. Reader thread.
  SpoolState& state() { return state_; }

  // The job, for whoever delivers the spool later. Reader thread.
  absl::Status WriteHello(const lull::v1::Hello& hello);

  // Numbers the batch, writes it, applies it to state(). RESOURCE_EXHAUSTED when
  // the spool or the disk is full; the batch is then not in the spool at all. A
  // batch without events may use a reserve that events may not.
  absl::Status Append(lull::v1::Batch* batch);

  struct Entry {
    uint64_t sequence = 0;
    std::string body;  // serialised lull.v1.Batch
  };
  // The first batch after `sequence`, waiting for it if need be. nullopt after
  // `timeout`, or when Interrupt() was called meanwhile. Of a batch that was damaged on
  // the disk only the number is left.
  std::optional<Entry> WaitForNext(uint64_t sequence, absl::Duration timeout);
  void Interrupt();

  // Everything up to `sequence` is durable elsewhere.
  void Acknowledge(uint64_t sequence);

  // The collector does not take this batch, however often it is sent. From now on
  // WaitForNext() gives less of it (refused_batches.h). One of which nothing more can
  // be left out counts as acknowledged.
  void SetAside(uint64_t sequence);

  uint64_t last_sequence() const;
  uint64_t acknowledged() const;  // all up to here are acknowledged
  // Readable while every batch is acknowledged, for poll() alone; -1: there was no
  // descriptor left.
  int all_acknowledged_fd() const { return all_acknowledged_fd_.get(); }
  uint64_t bytes() const;  // on disk
  const std::string& directory() const { return directory_; }

  // If the directory is removed from now on, it stays so: there is no keeper any more,
  // and whoever removed it wants nothing to be left. Before, it is made anew.
  void LeaveRemoved() { makes_anew_ = false; }

  // Removes the directory. Only when all is acknowledged.
  absl::Status Remove();

 private:
  struct Slot {
    uint64_t sequence;
    uint64_t file;
    uint64_t offset;  // of the record
    uint32_t length;  // of the record, header included
  };
  struct File {
    uint64_t number;
    uint64_t bytes;
    uint64_t last_sequence;  // 0: no batch in it
    UniqueFd fd;
  };

  Spool(std::string directory, uint64_t limit_bytes, UniqueFd lock);
  absl::Status Recover();
  absl::Status RecoverFile(uint64_t number, bool newest, bool* usable);
  std::string PathOf(uint64_t number) const;
  absl::Status BeginFile() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeDirectoryAnew();
  absl::Status WriteRecord(const std::string& record)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DropAcknowledgedFiles() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AcknowledgeLocked(uint64_t sequence) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellWhetherAllAcknowledged() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::string BodyOf(const Slot& slot) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t BytesLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string directory_;
  const uint64_t limit_bytes_;
  const uint64_t file_bytes_;
  UniqueFd lock_;
  const UniqueFd all_acknowledged_fd_;
  SpoolState state_;
  lull::v1::Hello hello_;
  bool makes_anew_ = true;  // reader thread

  mutable Mutex mutex_;
  std::condition_variable changed_;  // a slot was added, or interrupted_ set
  std::deque<File> files_ ABSL_GUARDED_BY(mutex_);
  std::deque<Slot> slots_ ABSL_GUARDED_BY(mutex_);  // not acknowledged, by sequence
  RefusedBatches refused_ ABSL_GUARDED_BY(mutex_);
  uint64_t last_sequence_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t acknowledged_ ABSL_GUARDED_BY(mutex_) = 0;
  bool all_acknowledged_ ABSL_GUARDED_BY(mutex_) = false;  // as the descriptor says
  bool interrupted_ ABSL_GUARDED_BY(mutex_) = false;
};

// A keeper holds this for as long as it lives: between two workers a spool belongs to
// nobody, and is still no leftover. UNAVAILABLE: another one does.
absl::StatusOr<UniqueFd> KeepSpool(const std::string& directory);

// The job of a spool, see Spool::WriteHello().
absl::StatusOr<lull::v1::Hello> ReadSpoolHello(const std::string& directory);

}  // namespace lull::relay
