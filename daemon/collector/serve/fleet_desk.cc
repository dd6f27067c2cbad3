#include "daemon/collector/serve/fleet_desk.h"

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "daemon/base/host_name.h"
#include "daemon/base/status.h"
#include "daemon/base/tags.h"
#include "daemon/base/tcp_address.h"
#include "daemon/base/text.h"
#include "daemon/fleet/clickhouse_fleet.h"
#include "daemon/fleet/edition.h"
#include "daemon/fleet/stored_jobs.h"
#include "daemon/fleet/summary.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kPatienceOfAnAnswer = absl::Seconds(30);
constexpr absl::Duration kPatienceOfALookup = absl::Seconds(5);
constexpr size_t kMostBytesOfARequest = 16 << 10;

// What is known of a job before its report is made. Nobody knows the end of one that
// goes on.
fleet::JobRow RowOf(const fleet::StoredJob& stored) {
  const storage::JobRow& job = stored.job;
  fleet::JobRow row;
  row.name = job.info.name();
  row.user = job.info.user();
  row.host = job.info.host();
  row.tags.assign(job.marks.tags().begin(), job.marks.tags().end());
  row.start_unix_ns = job.info.start_realtime_ns();
  if (job.end.end_ns() > job.info.start_ns()) {
    row.duration_ns = job.end.end_ns() - job.info.start_ns();
  }
  return row;
}

v1::FleetRequest AtAnyTime(v1::FleetRequest request) {
  request.clear_since_unix_ns();
  request.clear_until_unix_ns();
  return request;
}

bool IsTooLong(const v1::FleetRequest& request) {
  return request.tags_size() > kMaxTags ||
         request.ByteSizeLong() > kMostBytesOfARequest;
}

}  // namespace

FleetDesk::FleetDesk(std::optional<FleetTarget> target, storage::Store& store,
                     query::HasRelay has_relay)
    : target_(std::move(target)), store_(store), has_relay_(std::move(has_relay)) {}

absl::Status FleetDesk::Answer(const v1::FleetRequest& request,
                               const std::function<bool()>& is_over,
                               v1::FleetReply* reply) {
  if (IsTooLong(request)) {
    return absl::InvalidArgumentError("that is too long: give fewer tags or names");
  }
  absl::Cleanup done = [this] { --under_way_; };
  if (++under_way_ > kMost) {
    return absl::ResourceExhaustedError(
        absl::StrCat(kMost, " answers about all jobs are under way; ask again later"));
  }
  if (v1::FleetGroup_IsValid(request.group_by())) {
    reply->set_grouped_by(request.group_by());
  }
  return target_ ? FromClickHouse(request, is_over, reply)
                 : FromStore(request, is_over, reply);
}

absl::Status FleetDesk::FromClickHouse(const v1::FleetRequest& request,
                                       const std::function<bool()>& is_over,
                                       v1::FleetReply* reply) {
  LULL_ASSIGN_OR_RETURN(auto server, fleet::ClickHouse::Make(target_->server, is_over));
  reply->set_store(v1::FLEET_STORE_CLICKHOUSE);
  reply->set_url(server->url());
  const absl::Status status =
      fleet::FleetOf(*server, request, absl::Now() + kPatienceOfAnAnswer, reply);
  if (status.ok() || absl::IsOutOfRange(status) || absl::IsCancelled(status)) {
    return status;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("the ClickHouse at ", server->url(),
                   ", where the collector keeps totals of all jobs, does not answer: ",
                   std::string(status.message())));
}

absl::StatusOr<std::optional<fleet::Whereabouts>> FleetDesk::Find(
    const std::string& job, const std::function<bool()>& is_over) {
  if (!target_ || job.empty() || job.size() > kMaxWireString) return std::nullopt;
  const std::string unknown = "whether another collector has it, ";
  absl::Cleanup done = [this] { --finds_under_way_; };
  if (++finds_under_way_ > kMostFinds) {
    return absl::NotFoundError(absl::StrCat(unknown, "was not asked: ", kMostFinds,
                                            " such questions are under way"));
  }
  auto ask = [&]() -> absl::StatusOr<std::optional<fleet::Whereabouts>> {
    LULL_ASSIGN_OR_RETURN(auto server,
                          fleet::ClickHouse::Make(target_->server, is_over));
    return fleet::FindJob(*server, job, target_->collector,
                          absl::Now() + kPatienceOfALookup);
  };
  const auto found = ask();
  if (absl::IsInvalidArgument(found.status())) return found;
  if (!found.ok()) {
    return absl::NotFoundError(
        absl::StrCat(unknown, "the ClickHouse at ", target_->server.peer.url(),
                     " does not say: ", found.status().message()));
  }
  if (!*found) {
    return absl::NotFoundError(
        "the fleet does not know it either (a job that has just begun may take a "
        "minute "
        "to appear)");
  }
  const fleet::Whereabouts& there = **found;
  const std::string shown = absl::StrCat("job ", there.job.substr(0, 8));
  if (!ParseTcpAddress(there.collector)) {  // any collector of that host
    return absl::NotFoundError(
        absl::StrCat(shown, " is, or was, with a collector on ", there.collector,
                     " that does not say how to reach it (lulld --advertise)"));
  }
  if (there.collector == target_->collector) {
    return absl::NotFoundError(absl::StrCat(
        shown, " was with the collector at ", there.collector,
        ", which is this one: it has been deleted (`lull fleet` has its totals), or "
        "another collector has the same --advertise"));
  }
  return found;
}

absl::Status FleetDesk::FromStore(const v1::FleetRequest& request,
                                  const std::function<bool()>& is_over,
                                  v1::FleetReply* reply) {
  LULL_ASSIGN_OR_RETURN(fleet::StoredJobs stored,
                        fleet::JobsOf(store_, has_relay_, HostName()));
  const v1::FleetRequest at_any_time = AtAnyTime(request);
  fleet::Summary summary;
  // Who was late in a run stands with its first job, whichever of them is asked for.
  std::set<std::string> runs;
  std::stable_sort(
      stored.jobs.begin(), stored.jobs.end(),
      [](const auto& a, const auto& b) { return a.is_first() < b.is_first(); });
  for (const fleet::StoredJob& one : stored.jobs) {
    if (is_over()) return absl::CancelledError("nobody waits for the answer");
    const bool may_count =
        fleet::IsAskedFor(one.job.ended ? request : at_any_time, RowOf(one));
    const bool for_late = runs.contains(one.job.info.id());
    if (!may_count && !for_late) continue;
    auto answers = fleet::AskOf(store_, has_relay_, one.job.info.id(), one.is_first());
    if (absl::IsNotFound(answers.status())) continue;  // deleted meanwhile
    if (absl::IsDataLoss(answers.status())) {
      ++stored.damaged;
      continue;
    }
    LULL_RETURN_IF_ERROR(answers.status());
    fleet::Editions rows;
    fleet::AddEdition(one.edition(), *answers, &rows);
    const bool counts = may_count && fleet::IsAskedFor(request, rows.jobs.front());
    if (!counts && !for_late) continue;
    runs.insert(one.run);
    if (!request.host().empty()) {
      std::erase_if(rows.late, [&request](const fleet::LateRow& late) {
        return late.host != request.host();
      });
    }
    if (!counts) {
      fleet::Editions late_alone;
      late_alone.late = std::move(rows.late);
      rows = std::move(late_alone);
    }
    summary.Add(rows);
  }
  reply->set_store(v1::FLEET_STORE_COLLECTOR);
  LULL_RETURN_IF_ERROR(summary.Fill(request, reply));
  reply->set_damaged_jobs(stored.damaged);
  return absl::OkStatus();
}

}  // namespace lull::collector
