// `lulld --clickhouse`: keeps totals of its jobs in a ClickHouse (docs/fleet.md).
#pragma once

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "daemon/base/mutex.h"
#include "daemon/fleet/clickhouse.h"
#include "daemon/fleet/stored_jobs.h"
#include "daemon/fleet/tables.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"

namespace lull::collector {

struct FleetTarget {
  fleet::ClickHouseTarget server;
  std::string collector;  // this one, as JobRow names it
  absl::Duration every = absl::Minutes(1);
};

// Writes each job that changed since it was written last, whole. What is there is asked
// of the server, at the start and after each error, so there is nothing to keep here:
// while the server is away, jobs wait in the store until retention deletes them.
class FleetPush {
 public:
  // `store` must outlive it. A round comes at once, then one each `every`; after a
  // round that took long to read the store it rests longer, up to five minutes.
  static absl::StatusOr<std::unique_ptr<FleetPush>> Start(const FleetTarget& target,
                                                          storage::Store& store,
                                                          query::HasRelay has_relay);
  // Once more, for a few seconds at most, or until a report that is under way is made:
  // ends of jobs are not to be missed.
  ~FleetPush();
  FleetPush(const FleetPush&) = delete;
  FleetPush& operator=(const FleetPush&) = delete;

 private:
  FleetPush(std::unique_ptr<fleet::ClickHouse> server, const FleetTarget& target,
            storage::Store& store, query::HasRelay has_relay);

  void Run();
  absl::Status Round(bool last);
  absl::Status Load(const std::vector<fleet::StoredJob>& candidates);
  bool IsDue(const fleet::StoredJob& candidate) const;
  absl::Status Collect(const fleet::StoredJob& candidate);
  void LeaveUntilItChanges(const fleet::StoredJob& candidate);
  absl::Status Flush();
  bool IsOver(bool last);
  void Tell(const absl::Status& status);

  const std::unique_ptr<fleet::ClickHouse> server_;
  const std::string collector_;
  const absl::Duration every_;
  storage::Store& store_;
  const query::HasRelay has_relay_;

  // The thread's own.
  // Absent: the server is to be asked. Of a job that cannot be read, what it was then.
  std::optional<std::map<std::string, fleet::Written>> written_;
  // Jobs of which the server said what it has, if anything.
  std::set<std::string> asked_;
  // The first of the two that are written to, see tables.h; absent: to be drawn.
  std::optional<uint64_t> slots_;
  uint64_t version_ = 0;       // the newest of all editions, also of those that failed
  std::set<uint16_t> days_;    // of editions_
  std::set<std::string> bad_;  // jobs of which the log says why they are not told
  absl::Duration spent_;       // on answers, in a round
  fleet::Editions editions_;   // to be written
  std::map<std::string, fleet::Written> under_way_;  // of these
  std::set<absl::StatusCode> told_;  // errors that the log has since all was well

  Mutex mutex_;
  std::condition_variable changed_;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  bool given_up_ ABSL_GUARDED_BY(mutex_) = false;
  bool ended_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lull::collector
