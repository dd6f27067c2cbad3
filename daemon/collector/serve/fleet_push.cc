#include "daemon/collector/serve/fleet_push.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "absl/random/random.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/clock.h"
#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/base/thread.h"
#include "daemon/fleet/edition.h"

namespace lull::collector {
namespace {

constexpr absl::Duration kLastRound = absl::Seconds(5);
// Of the time that a round took to read the store: so long it rests at least, up to
// kMostRest.
constexpr int kTimesRest = 20;
constexpr absl::Duration kMostRest = absl::Minutes(5);
// A current server takes 100 partitions in an insert.
constexpr size_t kDaysOfAnInsert = 50;
// ClickHouse wants few large inserts; a block of its own has 1,048,576 rows.
constexpr size_t kRowsOfAnInsert = 100'000;

}  // namespace

absl::StatusOr<std::unique_ptr<FleetPush>> FleetPush::Start(const FleetTarget& target,
                                                            storage::Store& store,
                                                            query::HasRelay has_relay) {
  LULL_ASSIGN_OR_RETURN(auto server, fleet::ClickHouse::Make(target.server));
  return std::unique_ptr<FleetPush>(
      new FleetPush(std::move(server), target, store, std::move(has_relay)));
}

FleetPush::FleetPush(std::unique_ptr<fleet::ClickHouse> server,
                     const FleetTarget& target, storage::Store& store,
                     query::HasRelay has_relay)
    : server_(std::move(server)),
      collector_(target.collector),
      every_(target.every),
      store_(store),
      has_relay_(std::move(has_relay)),
      thread_(StartThread([this] { Run(); })) {}

FleetPush::~FleetPush() {
  {
    const auto until =
        std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(kLastRound);
    MutexLock lock(mutex_);
    ending_ = true;
    server_->Cancel();  // the last round comes yet
    changed_.notify_all();
    while (!ended_ &&
           changed_.wait_until(lock.native(), until) != std::cv_status::timeout) {
    }
    given_up_ = true;
    server_->Cancel();
  }
  thread_.join();
}

void FleetPush::Run() {
  bool last = false;
  while (!last) {
    const auto began = std::chrono::steady_clock::now();
    const absl::Status status = Round(false);
    if (!absl::IsCancelled(status)) Tell(status);
    const absl::Duration rest = std::min(kTimesRest * spent_, kMostRest);
    const auto until =
        std::max(began + absl::ToChronoNanoseconds(every_),
                 std::chrono::steady_clock::now() + absl::ToChronoNanoseconds(rest));
    MutexLock lock(mutex_);
    while (!ending_ &&
           changed_.wait_until(lock.native(), until) != std::cv_status::timeout) {
    }
    last = ending_;
    if (last && !given_up_) server_->Resume();
  }
  Tell(Round(true));
  MutexLock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

bool FleetPush::IsOver(bool last) {
  MutexLock lock(mutex_);
  return given_up_ || (ending_ && !last);
}

absl::Status FleetPush::Round(bool last) {
  if (IsOver(last)) return absl::CancelledError("lulld ends");
  editions_ = {};  // of a round that was broken off
  under_way_.clear();
  days_.clear();
  const absl::Time began = SteadyNow();
  LULL_ASSIGN_OR_RETURN(const fleet::StoredJobs stored,
                        fleet::JobsOf(store_, has_relay_, collector_));
  spent_ = SteadyNow() - began;
  LULL_RETURN_IF_ERROR(Load(stored.jobs));
  for (const fleet::StoredJob& candidate : stored.jobs) {
    if (IsOver(last)) return absl::CancelledError("lulld ends");
    LULL_RETURN_IF_ERROR(Collect(candidate));
    if (editions_.size() >= kRowsOfAnInsert || days_.size() >= kDaysOfAnInsert) {
      LULL_RETURN_IF_ERROR(Flush());
    }
  }
  return Flush();
}

absl::Status FleetPush::Load(const std::vector<fleet::StoredJob>& candidates) {
  const bool first = !written_;
  if (first) {
    LULL_RETURN_IF_ERROR(server_->Prepare());
    asked_.clear();
  }
  // Also of one that comes later: it may come back.
  std::vector<std::string> ids;
  for (const fleet::StoredJob& candidate : candidates) {
    const std::string& id = candidate.job.info.id();
    if (!asked_.contains(id)) ids.push_back(id);
  }
  LULL_ASSIGN_OR_RETURN(auto found, server_->Find(ids));
  asked_.insert(ids.begin(), ids.end());
  if (first) written_.emplace();
  written_->merge(found);
  if (!slots_) slots_ = absl::Uniform<uint64_t>(absl::BitGen()) & ~uint64_t{1};
  return absl::OkStatus();
}

bool FleetPush::IsDue(const fleet::StoredJob& candidate) const {
  const auto there = written_->find(candidate.job.info.id());
  if (there == written_->end()) return true;
  // Its end has been told, and other jobs of its run have been deleted here since: it
  // is told of better there.
  if (!candidate.live && there->second.live == 0 &&
      candidate.parts < there->second.parts &&
      candidate.stored_ns <= there->second.stored_ns) {
    return false;
  }
  return candidate.stored_ns != there->second.stored_ns ||
         candidate.state != there->second.state;
}

absl::Status FleetPush::Collect(const fleet::StoredJob& candidate) {
  if (!IsDue(candidate)) return absl::OkStatus();
  const std::string& id = candidate.job.info.id();
  const auto there = written_->find(id);
  // The version grows also where the clock was set back.
  version_ = std::max(version_ + 1, RealtimeNs() / 1000);
  fleet::Written next{*slots_,         version_,        candidate.stored_ns,
                      candidate.state, candidate.parts, candidate.live,
                      /*events=*/0};
  if (there != written_->end()) {
    if (there->second.slot == *slots_) ++next.slot;
    version_ = next.version = std::max(version_, there->second.version + 1);
  }
  const absl::Time began = SteadyNow();
  auto answers = fleet::AskOf(store_, has_relay_, id,
                              /*with_late_ranks=*/candidate.is_first());
  spent_ += SteadyNow() - began;
  if (absl::IsNotFound(answers.status())) return absl::OkStatus();  // deleted meanwhile
  if (!answers.ok()) {
    if (bad_.insert(id).second) {
      LogWarning(absl::StrCat("job ", id, " cannot be told to ", server_->url(), ": ",
                              std::string(answers.status().message())));
    }
    if (absl::IsDataLoss(answers.status())) LeaveUntilItChanges(candidate);
    return absl::OkStatus();
  }
  next.events = answers->totals.losses.events_stored();
  if (there != written_->end() && next.events < there->second.events) {
    if (bad_.insert(id).second) {
      LogWarning(absl::StrCat("job ", id, " is not told to ", server_->url(),
                              ": it has events of the job that are here no more"));
    }
    LeaveUntilItChanges(candidate);
    return absl::OkStatus();
  }
  fleet::EditionOf edition = candidate.edition();
  edition.key.slot = next.slot;
  edition.key.version = next.version;
  fleet::AddEdition(edition, *answers, &editions_);
  under_way_[id] = next;
  days_.insert(edition.key.day.days);
  return absl::OkStatus();
}

void FleetPush::LeaveUntilItChanges(const fleet::StoredJob& candidate) {
  fleet::Written& known = (*written_)[candidate.job.info.id()];
  known.stored_ns = candidate.stored_ns;
  known.state = candidate.state;
  known.parts = candidate.parts;
}

absl::Status FleetPush::Flush() {
  const fleet::Editions editions = std::exchange(editions_, {});
  const auto under_way = std::exchange(under_way_, {});
  days_.clear();
  const absl::Status status = server_->Write(editions);
  if (!status.ok()) {
    written_.reset();  // whatever of it is there
    if (!absl::IsFailedPrecondition(status)) slots_.reset();
    return status;
  }
  for (const auto& [id, written] : under_way) (*written_)[id] = written;
  return absl::OkStatus();
}

// Once for each kind of error, until all is well again.
void FleetPush::Tell(const absl::Status& status) {
  if (!status.ok()) {
    if (!told_.insert(status.code()).second) return;
    LogWarning(absl::StrCat("totals of jobs do not arrive at ", server_->url(), ": ",
                            std::string(status.message())));
  } else if (!told_.empty()) {
    LogInfo(absl::StrCat("totals of jobs arrive at ", server_->url(), " again"));
    told_.clear();
  }
}

}  // namespace lull::collector
