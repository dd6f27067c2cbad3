#include "daemon/fleet/summary.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lull::fleet {
namespace {

// The entries of a map with the largest values, in falling order; of the same value as
// in the map.
template <typename Map, typename Value>
std::vector<const typename Map::value_type*> Largest(const Map& map, uint32_t limit,
                                                     Value value, uint64_t* left_out) {
  std::vector<const typename Map::value_type*> rows;
  for (const auto& entry : map) rows.push_back(&entry);
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    return value(a->second) > value(b->second);
  });
  *left_out = rows.size() > limit ? rows.size() - limit : 0;
  rows.resize(std::min<size_t>(rows.size(), limit));
  return rows;
}

bool HasTag(const JobRow& job, const std::string& tag) {
  return std::find(job.tags.begin(), job.tags.end(), tag) != job.tags.end();
}

}  // namespace

bool IsAskedFor(const v1::FleetRequest& request, const JobRow& job) {
  const auto fits = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  return job.start_unix_ns >= request.since_unix_ns() &&
         (request.until_unix_ns() == 0 ||
          job.start_unix_ns < request.until_unix_ns()) &&
         fits(request.name(), job.name) && fits(request.user(), job.user) &&
         fits(request.host(), job.host) &&
         std::all_of(request.tags().begin(), request.tags().end(),
                     [&](const std::string& tag) { return HasTag(job, tag); });
}

void Summary::Add(const Editions& editions) {
  for (const JobRow& row : editions.jobs) {
    jobs_[row.job].row = row;
    totals_.set_jobs(totals_.jobs() + 1);
    totals_.set_live_jobs(totals_.live_jobs() + row.live);
    if (row.traced_ns > 0) {
      totals_.set_traced_jobs(totals_.traced_jobs() + 1);
      totals_.set_rank_time_ms(totals_.rank_time_ms() +
                               row.duration_ns / 1'000'000 * std::max(row.ranks, 1U));
    }
    hosts_.insert(row.host);
    collectors_.insert(row.collector);
    totals_.set_traced_ns(totals_.traced_ns() + row.traced_ns);
    totals_.set_busy_ns(totals_.busy_ns() + row.busy_ns);
    totals_.set_idle_ns(totals_.idle_ns() + row.idle_ns);
    totals_.set_explained_ns(totals_.explained_ns() + row.explained_ns);
    totals_.set_sync_blocked_ns(totals_.sync_blocked_ns() + row.sync_blocked_ns);
    totals_.set_events_lost(totals_.events_lost() + row.events_lost);
  }
  for (const CauseRow& row : editions.causes) {
    if (row.total_ns == 0) continue;
    Sums& sums = causes_[row.cause];
    ++sums.jobs;
    sums.total_ns += row.total_ns;
    Job& job = jobs_[row.job];
    if (row.total_ns > job.cause_ns ||
        (row.total_ns == job.cause_ns && row.cause < job.cause)) {
      job.cause = row.cause;
      job.cause_ns = row.total_ns;
    }
  }
  for (const LineRow& row : editions.lines) {
    if (row.total_ns == 0) continue;
    Sums& sums = lines_[{row.cause, row.file, row.line, row.function, row.api}];
    ++sums.jobs;
    sums.total_ns += row.total_ns;
    sums.max_ns = std::max(sums.max_ns, row.max_ns);
  }
  for (const LateRow& row : editions.late) {
    if (row.cost_ns == 0) continue;
    LateSums& sums = late_[{row.host, row.cause, row.file, row.line, row.function}];
    sums.jobs.insert(row.job);
    sums.cost_ns += row.cost_ns;
    totals_.set_late_cost_ns(totals_.late_cost_ns() + row.cost_ns);
  }
}

void Summary::Fill(uint32_t limit, v1::FleetReply* reply) const {
  *reply->mutable_totals() = totals_;
  reply->mutable_totals()->set_hosts(hosts_.size());
  reply->mutable_totals()->set_collectors(collectors_.size());
  const auto total = [](const Sums& sums) { return sums.total_ns; };
  uint64_t left_out = 0;
  for (const auto* entry : Largest(causes_, kMostFleetRows, total, &left_out)) {
    v1::FleetCause& row = *reply->add_causes();
    row.set_cause(entry->first);
    row.set_jobs(entry->second.jobs);
    row.set_total_ns(entry->second.total_ns);
  }
  for (const auto* entry : Largest(lines_, limit, total, &left_out)) {
    v1::FleetLine& row = *reply->add_lines();
    row.set_cause(entry->first.cause);
    row.set_file(entry->first.file);
    row.set_line(entry->first.line);
    row.set_function(entry->first.function);
    row.set_api(entry->first.api);
    row.set_jobs(entry->second.jobs);
    row.set_total_ns(entry->second.total_ns);
    row.set_max_ns(entry->second.max_ns);
  }
  reply->set_lines_left_out(left_out);
  FillJobs(limit, reply);
  FillLate(limit, reply);
}

void Summary::FillJobs(uint32_t limit, v1::FleetReply* reply) const {
  uint64_t left_out = 0;
  const auto idle = [](const Job& job) { return job.row.idle_ns; };
  for (const auto* entry : Largest(jobs_, limit, idle, &left_out)) {
    const auto& [of, cause, cause_ns] = entry->second;
    v1::FleetJob& row = *reply->add_jobs();
    row.set_id(of.job);
    row.set_name(of.name);
    row.set_host(of.host);
    row.set_user(of.user);
    row.set_start_unix_ns(of.start_unix_ns);
    row.set_duration_ns(of.duration_ns);
    row.set_live(of.live != 0);
    row.set_ranks(of.ranks);
    row.set_traced_ns(of.traced_ns);
    row.set_idle_ns(of.idle_ns);
    row.set_cause(cause);
    row.set_cause_ns(cause_ns);
    row.set_collector(of.collector);
  }
  reply->set_jobs_left_out(left_out);
}

void Summary::FillLate(uint32_t limit, v1::FleetReply* reply) const {
  uint64_t left_out = 0;
  const auto cost = [](const LateSums& sums) { return sums.cost_ns; };
  for (const auto* entry : Largest(late_, limit, cost, &left_out)) {
    v1::FleetLate& row = *reply->add_late();
    row.set_host(entry->first.host);
    row.set_cause(entry->first.cause);
    row.set_file(entry->first.file);
    row.set_line(entry->first.line);
    row.set_function(entry->first.function);
    row.set_jobs(entry->second.jobs.size());
    row.set_cost_ns(entry->second.cost_ns);
  }
  reply->set_late_left_out(left_out);
}

}  // namespace lull::fleet
