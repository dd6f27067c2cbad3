// Answers `lull fleet`: from the ClickHouse where this collector keeps totals of its
// jobs, else from its own store.
#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "daemon/fleet/clickhouse.h"
#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "fleet.pb.h"

namespace lull::collector {

// Thread-safe.
class FleetDesk {
 public:
  // Answers that are made at a time: each takes a thread of the server for as long as
  // the ClickHouse (30 s at most) or the reports of all jobs take.
  static constexpr int kMost = 4;

  // `store` must outlive it.
  FleetDesk(std::optional<fleet::ClickHouseTarget> target, storage::Store& store,
            query::HasRelay has_relay);

  // `is_over`: nobody waits for the answer any more. RESOURCE_EXHAUSTED: beyond kMost;
  // FAILED_PRECONDITION: what the ClickHouse says; CANCELLED.
  absl::Status Answer(const v1::FleetRequest& request,
                      const std::function<bool()>& is_over, v1::FleetReply* reply);

 private:
  absl::Status FromClickHouse(const v1::FleetRequest& request,
                              const std::function<bool()>& is_over,
                              v1::FleetReply* reply);
  absl::Status FromStore(const v1::FleetRequest& request,
                         const std::function<bool()>& is_over, v1::FleetReply* reply);

  const std::optional<fleet::ClickHouseTarget> target_;
  storage::Store& store_;
  const query::HasRelay has_relay_;
  std::atomic<int> under_way_{0};
};

}  // namespace lull::collector
