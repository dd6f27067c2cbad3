// Answers `lull fleet`: from the ClickHouse where this collector keeps totals of its
// jobs, else from its own store. And says which other collector has a job.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/collector/serve/fleet_push.h"
#include "daemon/fleet/elsewhere.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "fleet.pb.h"

namespace lull::collector {

// Thread-safe.
class FleetDesk {
 public:
  // Answers, and questions about a job, that are under way at a time: each takes a
  // thread of the server for as long as the ClickHouse (30 s at most, 5 s of a job) or
  // the reports of all jobs take.
  static constexpr int kMost = 4;
  static constexpr int kMostFinds = 8;

  // `store` must outlive it.
  FleetDesk(std::optional<FleetTarget> target, storage::Store& store,
            query::HasRelay has_relay);

  // `is_over`: nobody waits for the answer any more. RESOURCE_EXHAUSTED: beyond kMost;
  // FAILED_PRECONDITION: what the ClickHouse says; CANCELLED.
  absl::Status Answer(const v1::FleetRequest& request,
                      const std::function<bool()>& is_over, v1::FleetReply* reply);

  // Where the job is that is not in this store; nullopt: this collector is of no fleet.
  // INVALID_ARGUMENT: of two jobs either may be meant; NOT_FOUND: why there is no other
  // collector to ask, as a sentence.
  absl::StatusOr<std::optional<fleet::Whereabouts>> Find(
      const std::string& job, const std::function<bool()>& is_over);

 private:
  absl::Status FromClickHouse(const v1::FleetRequest& request,
                              const std::function<bool()>& is_over,
                              v1::FleetReply* reply);
  absl::Status FromStore(const v1::FleetRequest& request,
                         const std::function<bool()>& is_over, v1::FleetReply* reply);

  const std::optional<FleetTarget> target_;
  storage::Store& store_;
  const query::HasRelay has_relay_;
  std::atomic<int> under_way_{0};
  std::atomic<int> finds_under_way_{0};
};

}  // namespace lull::collector
