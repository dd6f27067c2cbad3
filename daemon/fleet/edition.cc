#include "daemon/fleet/edition.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "daemon/base/status.h"
#include "daemon/words/cause_words.h"
#include "daemon/words/facts.h"

namespace lull::fleet {
namespace {

// Rows of one table by what tells them apart.
using Key = std::tuple<int32_t, std::string, std::string, int32_t, std::string,
                       std::string>;  // rank, cause, file, line, function, api

Key KeyOf(int32_t rank, std::string cause, const v1::Site& site, std::string api) {
  return {rank,        std::move(cause), site.file(),
          site.line(), site.function(),  std::move(api)};
}

template <typename Row>
Row WithKey(const RowKey& key) {
  Row row;
  static_cast<RowKey&>(row) = key;
  return row;
}

struct Sums {
  uint64_t count = 0;
  uint64_t total_ns = 0;
  uint64_t max_ns = 0;
  uint64_t wasted_ns = 0;

  void Add(const Sums& other) {
    count += other.count;
    total_ns += other.total_ns;
    max_ns = std::max(max_ns, other.max_ns);
    wasted_ns += other.wasted_ns;
  }
};
using ByLine = std::map<Key, Sums>;

// The rows with most time, and the others of a cause together, without a line.
ByLine Shortened(ByLine all) {
  if (all.size() <= kMostLines) return all;
  std::vector<std::pair<Key, Sums>> rows(all.begin(), all.end());
  const auto last = rows.begin() + kMostLines;
  std::nth_element(rows.begin(), last, rows.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  ByLine kept(rows.begin(), last);
  for (auto row = last; row != rows.end(); ++row) {
    const auto& [rank, cause, file, line, function, api] = row->first;
    kept[KeyOf(rank, cause, v1::Site(), "")].Add(row->second);
  }
  return kept;
}

void AddLines(const RowKey& key, const v1::Gaps& gaps, Editions* out) {
  ByLine all;
  for (const v1::GapRow& row : gaps.gaps()) {
    all[KeyOf(-1, CauseKey(row.cause()), row.culprit(), row.culprit_api())].Add(
        {row.count(), row.total_ns(), row.max_ns(), 0});
  }
  for (const auto& [of, sums] : Shortened(std::move(all))) {
    LineRow& row = out->lines.emplace_back(WithKey<LineRow>(key));
    std::tie(std::ignore, row.cause, row.file, row.line, row.function, row.api) = of;
    row.count = sums.count;
    row.total_ns = sums.total_ns;
    row.max_ns = sums.max_ns;
  }
}

void AddSyncs(const RowKey& key, const v1::Syncs& syncs, Editions* out) {
  ByLine all;
  for (const v1::SyncPoint& row : syncs.sync_points()) {
    all[KeyOf(-1, "", row.site(), row.api())].Add(
        {row.calls(), row.blocked_ns(), row.max_ns(), row.wasted_ns()});
  }
  for (const auto& [of, sums] : Shortened(std::move(all))) {
    SyncRow& row = out->syncs.emplace_back(WithKey<SyncRow>(key));
    std::tie(std::ignore, std::ignore, row.file, row.line, row.function, row.api) = of;
    row.calls = sums.count;
    row.blocked_ns = sums.total_ns;
    row.max_ns = sums.max_ns;
    row.wasted_ns = sums.wasted_ns;
  }
}

void AddLate(const RowKey& key, const v1::Ranks& ranks, Editions* out) {
  ByLine all;
  std::map<int32_t, std::string> hosts;
  for (const v1::RankRow& rank : ranks.ranks()) {
    hosts[rank.rank()] = rank.host();
    for (const v1::LateCause& late : rank.culprits()) {
      all[KeyOf(rank.rank(), late.cause(), late.site(), "")].Add(
          {late.steps(), late.total_ns(), 0, late.cost_ns()});
    }
  }
  for (const auto& [of, sums] : Shortened(std::move(all))) {
    LateRow& row = out->late.emplace_back(WithKey<LateRow>(key));
    std::tie(row.rank, row.cause, row.file, row.line, row.function, std::ignore) = of;
    row.host = hosts[row.rank];
    row.steps = sums.count;
    row.total_ns = sums.total_ns;
    row.cost_ns = sums.wasted_ns;
  }
}

template <typename Row>
Row CauseOf(const RowKey& key, const v1::CauseRow& of) {
  Row row = WithKey<Row>(key);
  row.cause = CauseKey(of.cause());
  row.count = of.count();
  row.total_ns = of.total_ns();
  row.max_ns = of.max_ns();
  return row;
}

template <typename Row>
void SetGpu(const v1::Gpu& gpu, Row* row) {
  row->traced_ns = gpu.traced_ns();
  row->busy_ns = gpu.busy_ns();
  row->kernel_ns = gpu.kernel_ns();
  row->idle_ns = gpu.idle_ns();
}

void AddRank(const RowKey& key, const std::string& host, const query::RankTotals& of,
             Editions* out) {
  RankRow& row = out->ranks.emplace_back(WithKey<RankRow>(key));
  row.rank = of.rank;
  row.host = host;
  row.processes = static_cast<uint32_t>(of.reply.processes_size());
  row.steps = of.steps.count;
  row.steps_ns = of.steps.total_ns;
  row.launches = of.reply.launches();
  row.own_ns = of.reply.overhead().self_ns();
  SetGpu(of.reply.gpu(), &row);
  for (const v1::ProcessRow& process : of.reply.processes()) {
    row.recorded_ns += RecordedNs(process);
    row.rested_ns += process.rested_ns();
    row.sync_blocked_ns += process.blocked_ns();
    row.data_wait_ns += process.data_wait_ns();
    row.gc_ns += process.gc_ns();
  }
  for (const v1::CauseRow& cause : of.reply.gaps().causes()) {
    out->rank_causes.push_back(CauseOf<RankCauseRow>(key, cause));
    out->rank_causes.back().rank = of.rank;
  }
}

// How long the processes of a rank had devices, each for itself: not while they
// imported PyTorch or fetched their data, before anything was traced.
uint64_t GpuNs(const query::RankTotals& rank) {
  uint64_t total = 0;
  for (size_t i = 0; i < rank.traced_devices.size(); ++i) {
    const uint64_t watched_ns = WatchedNs(rank.reply.processes(static_cast<int>(i)));
    total += (watched_ns - std::min(watched_ns, rank.before_tracing_ns[i])) *
             rank.traced_devices[i];
  }
  return total;
}

void AddJob(const EditionOf& edition, const Answers& answers, Editions* out) {
  const query::RunTotals& totals = answers.totals;
  const v1::Job& job = totals.job;
  JobRow& row = out->jobs.emplace_back(WithKey<JobRow>(edition.key));
  row.run = edition.run;
  row.run_id = edition.run_id;
  row.parts = edition.parts;
  row.name = job.name();
  row.host = job.host();
  row.user = edition.user;
  row.collector = edition.collector;
  row.tags.assign(job.tags().begin(), job.tags().end());
  row.start_unix_ns = job.start_realtime_ns();
  row.duration_ns = job.duration_ns();
  row.live = edition.live ? 1 : 0;
  row.ended = job.ended() ? 1 : 0;
  if (job.ended() && job.exit_status_known()) row.exit_status = job.exit_status();
  row.ranks = static_cast<uint32_t>(totals.ranks_left_out);
  row.ranks_left_out = static_cast<uint32_t>(totals.ranks_left_out);
  row.processes = job.processes();
  row.steps_sampled = AreStepsSampled(job) ? 1 : 0;
  for (const query::RankTotals& rank : totals.ranks) {
    if (rank.rank >= 0) ++row.ranks;
    row.steps += rank.steps.count;
    row.launches += rank.reply.launches();
    row.gpu_ns += GpuNs(rank);
  }
  SetGpu(answers.lines.gpu(), &row);
  row.explained_ns = answers.lines.gpu().explained_ns();
  row.sync_blocked_ns = answers.lines.syncs().total_blocked_ns();
  row.events_stored = totals.losses.events_stored();
  row.events_lost = totals.losses.events_lost();
  row.own_ns = answers.lines.overhead().self_ns();
  if (answers.ranks) {
    row.late_from_ns = answers.ranks->start_ns();
    row.late_until_ns = answers.ranks->end_ns();
  }
  row.stored_ns = edition.stored_ns;
  row.state = edition.state;
}

}  // namespace

absl::StatusOr<Answers> AskOf(storage::Store& store, const query::HasRelay& has_relay,
                              const std::string& id, bool with_late_ranks) {
  Answers answers;
  LULL_ASSIGN_OR_RETURN(answers.totals,
                        query::TotalsOfRun(store, has_relay, id, kMostRanks));
  v1::ReportRequest request;
  request.set_job(id);
  request.set_phase(v1::PHASE_ALL);
  request.add_sections(v1::SECTION_GAPS);
  request.add_sections(v1::SECTION_SYNCS);
  LULL_RETURN_IF_ERROR(query::Report(store, has_relay, request, &answers.lines));
  if (!with_late_ranks) return answers;
  request.clear_sections();
  request.add_sections(v1::SECTION_RANKS);
  v1::ReportReply late;
  const absl::Status status = query::Report(store, has_relay, request, &late);
  if (status.ok()) {
    answers.ranks = std::move(*late.mutable_ranks());
  } else if (!absl::IsFailedPrecondition(status) &&  // which says why there is nothing
             !absl::IsDataLoss(status)) {            // perhaps of another part
    return status;
  }
  return answers;
}

void AddEdition(const EditionOf& edition, const Answers& answers, Editions* out) {
  AddJob(edition, answers, out);
  for (const query::RankTotals& rank : answers.totals.ranks) {
    AddRank(edition.key, answers.totals.job.host(), rank, out);
  }
  for (const v1::CauseRow& cause : answers.lines.gaps().causes()) {
    out->causes.push_back(CauseOf<CauseRow>(edition.key, cause));
  }
  AddLines(edition.key, answers.lines.gaps(), out);
  AddSyncs(edition.key, answers.lines.syncs(), out);
  if (answers.ranks) AddLate(edition.key, *answers.ranks, out);
}

}  // namespace lull::fleet
