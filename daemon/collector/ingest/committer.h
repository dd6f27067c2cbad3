// The one thread that writes to the store.
//
// It takes batches of all streams as they come, collects them for a moment, and commits
// them together with their marks: a commit costs the same for one as for a hundred.
// Only then does it tell the streams. In between it deletes jobs that are too old.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "daemon/collector/ingest/commit_listener.h"
#include "daemon/collector/ingest/job_state.h"
#include "daemon/collector/ingest/retention.h"
#include "daemon/collector/ingest/store_clock.h"
#include "daemon/storage/store.h"
#include "ingest.pb.h"

namespace lull::collector {

struct CommitterOptions {
  absl::Duration interval = absl::Milliseconds(50);
  // Where more batches wait by then, and nothing else: each commit writes anew what the
  // one before it wrote. One in place of two: 6 % of the processor time of an import
  // (h100_owlv2).
  absl::Duration busy_interval = absl::Milliseconds(250);
  size_t max_queue_bytes = 64 << 20;  // of requests, as they were on the wire
  // Of one stream: what it needs to be one step ahead. In memory a request takes
  // several times as much.
  size_t max_stream_bytes = 512 << 10;
  size_t max_commit_bytes = 16 << 20;  // a larger group is committed at once
  RetentionLimits retention;
  // Whether a relay reports this job now, also if the job sleeps: then it is not
  // deleted. Thread-safe; may be empty: nobody knows.
  std::function<bool(const std::string& job)> has_relay;
};

class Committer {
 public:
  // `store` must outlive the committer.
  Committer(storage::Store& store, CommitterOptions options);
  ~Committer();  // as Stop

  // Takes a request: the Hello of a stream, or a valid batch or reading of a clock of
  // the job that this stream's Hello named. False: the queue is full, wait for
  // MayContinue before the next one; that may come before this returns, and never after
  // Stop. Thread-safe.
  bool Submit(std::shared_ptr<CommitListener> stream, const std::string& job,
              lull::v1::IngestRequest request, size_t bytes);

  // Runs `write` on the committer's thread; returns once that is committed, or an error
  // that leaves all as it was. UNAVAILABLE after Stop. Thread-safe.
  absl::Status Write(absl::FunctionRef<absl::Status(storage::StoreWriter&)> write);

  // Commits what was submitted, then ends the thread. Later requests are dropped.
  void Stop();

  uint64_t events_stored() const;  // since the start
  const RetentionLimits& limits() const { return options_.retention; }

 private:
  struct Item {
    std::shared_ptr<CommitListener> stream;
    std::string job;
    lull::v1::IngestRequest request;
    size_t bytes = 0;
    std::vector<lull::v1::RejectedRun> rejected;
  };
  struct Order {
    absl::FunctionRef<absl::Status(storage::StoreWriter&)> write;
    absl::Status status;
    bool done = false;
  };
  struct LoadedJob {
    std::unique_ptr<JobState> state;
    absl::Time last_used;
    uint64_t counted = 0;  // of state->events_stored()
    bool dirty = false;
  };

  bool MayQueueMore(const CommitListener& stream) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Run();
  std::vector<Item> Take(absl::Duration patience);
  bool HasOnlyMoreItems() const;
  void CommitGroup(std::vector<Item> first);
  void CarryOut(std::vector<Order*> orders);
  absl::Status Apply(Item& item);
  absl::Status FlushAll();
  bool InUse(const std::string& job) const;
  void Tell(std::vector<Item>& items, const absl::Status& status);
  static void Fail(CommitListener& stream, const absl::Status& status);
  void Unload();

  storage::Store& store_;
  const CommitterOptions options_;
  Retention retention_;
  StoreClock clock_;
  absl::flat_hash_map<std::string, LoadedJob> jobs_;  // of the thread alone
  storage::BlockEncoder encoder_;                     // as well

  mutable Mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Item> queue_ ABSL_GUARDED_BY(mutex_);
  std::condition_variable carried_out_;
  std::vector<Order*> orders_ ABSL_GUARDED_BY(mutex_);
  size_t queued_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  std::vector<std::shared_ptr<CommitListener>> waiting_ ABSL_GUARDED_BY(mutex_);
  uint64_t events_stored_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace lull::collector
