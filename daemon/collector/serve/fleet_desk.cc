#include "daemon/collector/serve/fleet_desk.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/status.h"
#include "daemon/fleet/clickhouse_fleet.h"
#include "daemon/fleet/edition.h"
#include "daemon/fleet/stored_jobs.h"
#include "daemon/fleet/summary.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kPatienceOfAnAnswer = absl::Seconds(20);

// What of a job's row its report need not be made for.
fleet::JobRow RowOf(const fleet::StoredJob& stored) {
  fleet::JobRow row;
  row.name = stored.job.info.name();
  row.user = stored.job.info.user();
  row.host = stored.job.info.host();
  row.tags.assign(stored.job.marks.tags().begin(), stored.job.marks.tags().end());
  row.start_unix_ns = stored.job.info.start_realtime_ns();
  return row;
}

}  // namespace

FleetDesk::FleetDesk(std::optional<fleet::ClickHouseTarget> target,
                     storage::Store& store, query::HasRelay has_relay)
    : target_(std::move(target)), store_(store), has_relay_(std::move(has_relay)) {}

absl::Status FleetDesk::Answer(const v1::FleetRequest& request,
                               const std::function<bool()>& is_over,
                               v1::FleetReply* reply) {
  absl::Cleanup done = [this] { --under_way_; };
  if (++under_way_ > kMost) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMost, " answers about all jobs are under way; ask again later"));
  }
  return target_ ? FromClickHouse(request, reply) : FromStore(request, is_over, reply);
}

absl::Status FleetDesk::FromClickHouse(const v1::FleetRequest& request,
                                       v1::FleetReply* reply) {
  LULL_ASSIGN_OR_RETURN(auto server,
                        fleet::ClickHouse::Make(*target_, kPatienceOfAnAnswer));
  reply->set_store(v1::FLEET_STORE_CLICKHOUSE);
  reply->set_url(server->url());
  const absl::Status status = fleet::FleetOf(*server, request, reply);
  if (status.ok() || absl::IsOutOfRange(status)) return status;
  return absl::FailedPreconditionError(
      absl::StrCat("the ClickHouse at ", server->url(),
                   ", where the collector keeps totals of all jobs, does not answer: ",
                   std::string(status.message())));
}

absl::Status FleetDesk::FromStore(const v1::FleetRequest& request,
                                  const std::function<bool()>& is_over,
                                  v1::FleetReply* reply) {
  LULL_ASSIGN_OR_RETURN(const fleet::StoredJobs stored,
                        fleet::JobsOf(store_, has_relay_));
  fleet::Summary summary;
  uint64_t damaged = stored.damaged;
  for (const fleet::StoredJob& one : stored.jobs) {
    if (!fleet::IsAskedFor(request, RowOf(one))) continue;
    if (is_over()) return absl::CancelledError("nobody waits for the answer");
    auto answers = fleet::AskOf(store_, has_relay_, one.job.info.id(), one.is_first());
    if (absl::IsNotFound(answers.status())) continue;  // deleted meanwhile
    if (absl::IsDataLoss(answers.status())) {
      ++damaged;
      continue;
    }
    LULL_RETURN_IF_ERROR(answers.status());
    fleet::Editions rows;
    fleet::AddEdition(one.edition(), *answers, &rows);
    summary.Add(rows);
  }
  reply->set_store(v1::FLEET_STORE_COLLECTOR);
  summary.Fill(fleet::LimitOf(request), reply);
  reply->set_damaged_jobs(damaged);
  return absl::OkStatus();
}

}  // namespace lull::collector
