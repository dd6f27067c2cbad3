#include "daemon/collector/serve/metrics_source.h"

#include <algorithm>
#include <utility>

#include "daemon/base/logging.h"
#include "daemon/base/status.h"
#include "daemon/collector/ingest/store_clock.h"
#include "daemon/query/run_totals.h"

namespace lull::collector {

using metrics::Metric;

MetricsSource::MetricsSource(storage::Store& store, query::HasRelay has_relay,
                             metrics::Bounds bounds, std::function<absl::Time()> now)
    : store_(store),
      has_relay_(std::move(has_relay)),
      bounds_(bounds),
      now_(std::move(now)) {}

// Ages are told by the store's clock, as those of retention are. Imported traces are no
// runs that somebody would watch.
absl::StatusOr<MetricsSource::Chosen> MetricsSource::ChooseRuns() {
  LULL_ASSIGN_OR_RETURN(auto reader, store_.NewReader());
  LULL_ASSIGN_OR_RETURN(storage::ClockRow clock, reader->catalogue().Clock());
  const uint64_t now_ns = StoreClock(clock, 0, HostClocks::Now()).row().now_ns;
  const auto kept_ns = static_cast<uint64_t>(absl::ToInt64Nanoseconds(kKept));
  std::vector<storage::JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, reader->catalogue().Jobs(0, &damaged));
  Chosen chosen;
  for (const storage::JobRow& job : jobs) {
    if (job.info.has_imported()) continue;
    const bool silent = job.touched_ns + kept_ns < now_ns;
    if (silent && !has_relay_(job.info.id())) continue;
    if (chosen.ids.size() < bounds_.runs) {
      chosen.ids.push_back(job.info.id());
    } else {
      ++chosen.left_out;
    }
  }
  return chosen;
}

// A store that cannot be read is not asked again at once either.
absl::Status MetricsSource::RenewIfDue() {
  if (now_() < next_) return renewed_;
  renewed_ = Renew();
  if (!renewed_.ok()) next_ = now_() + kLeastRest;
  return renewed_;
}

absl::Status MetricsSource::Renew() {
  const absl::Time began = now_();
  LULL_ASSIGN_OR_RETURN(Chosen chosen, ChooseRuns());
  metrics::Exposition exposition;
  size_t room = bounds_.ranks, ranks_left_out = 0;
  int64_t failed = 0;
  for (const std::string& id : chosen.ids) {
    auto totals = query::TotalsOfRun(store_, has_relay_, id, room);
    if (!totals.ok()) {
      if (absl::IsNotFound(totals.status())) continue;  // deleted meanwhile
      LogWarning("no metrics of a run: " + std::string(totals.status().message()));
      ++failed;
      continue;
    }
    room -= std::min(room, totals->ranks.size());
    ranks_left_out += metrics::AddRun(*totals, bounds_, &exposition);
  }
  const auto series = static_cast<int64_t>(exposition.series());
  exposition.Add({Metric::kBuildInfo, {"version", LULL_VERSION}, 1});
  exposition.Add(
      {Metric::kLeftOut, {"what", "runs"}, static_cast<int64_t>(chosen.left_out)});
  exposition.Add(
      {Metric::kLeftOut, {"what", "ranks"}, static_cast<int64_t>(ranks_left_out)});
  exposition.Add({Metric::kRunsFailed, {}, failed});
  exposition.Add({Metric::kSeries, {}, series});
  rising_.Next();
  exposition.Hold(&rising_);
  made_ = now_();
  const absl::Duration took = made_ - began;
  next_ = made_ + std::max(kLeastRest, kTimesRest * took);
  exposition.Add({Metric::kAnswerTime, {}, absl::ToInt64Nanoseconds(took)});
  text_ = exposition.Text();
  answer_ = {std::move(exposition), absl::Now()};
  return absl::OkStatus();
}

absl::StatusOr<std::string> MetricsSource::Text() {
  MutexLock lock(mutex_);
  LULL_RETURN_IF_ERROR(RenewIfDue());
  metrics::Exposition age;
  age.Add({Metric::kAnswerAge, {}, absl::ToInt64Nanoseconds(now_() - made_)});
  return text_ + age.Text();
}

absl::StatusOr<MetricsSource::Answer> MetricsSource::Samples(bool last) {
  MutexLock lock(mutex_);
  LULL_RETURN_IF_ERROR(last ? Renew() : RenewIfDue());
  return answer_;
}

}  // namespace lull::collector
