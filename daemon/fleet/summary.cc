#include "daemon/fleet/summary.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "absl/time/time.h"

namespace lull::fleet {
namespace {

constexpr uint64_t kMsNs = 1'000'000;
constexpr uint64_t kSecondNs = 1'000'000'000;

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

uint64_t EstimatedUs(uint64_t total_ns, double weight) {
  return static_cast<uint64_t>(
      std::min(1e16, static_cast<double>(total_ns) * weight / 1e3));
}

// The groups that a job counts for.
std::set<std::string> KeysOfGroups(v1::FleetGroup by, const JobRow& job) {
  constexpr uint64_t kDayNs = 86'400 * kSecondNs;
  switch (by) {
    case v1::FLEET_GROUP_HOST:
      return {job.host};
    case v1::FLEET_GROUP_NAME:
      return {job.name};
    case v1::FLEET_GROUP_TAG:
      if (job.tags.empty()) return {""};
      return {job.tags.begin(), job.tags.end()};
    case v1::FLEET_GROUP_DAY:
    case v1::FLEET_GROUP_WEEK: {
      const uint64_t day = std::clamp((job.start_unix_ns + job.duration_ns) / kDayNs,
                                      kFirstDay, kLastDay);
      // The first of January 1970 was a Thursday.
      return {DayText(by == v1::FLEET_GROUP_DAY ? day : day - (day + 3) % 7)};
    }
    default:
      return {job.user};
  }
}

bool HasTag(const JobRow& job, const std::string& tag) {
  return std::find(job.tags.begin(), job.tags.end(), tag) != job.tags.end();
}

}  // namespace

bool IsAskedFor(const v1::FleetRequest& request, const JobRow& job) {
  const auto fits = [](const std::string& wanted, const std::string& text) {
    return wanted.empty() || wanted == text;
  };
  const uint64_t end_ns = job.start_unix_ns + job.duration_ns;
  return end_ns >= request.since_unix_ns() &&
         (request.until_unix_ns() == 0 || end_ns < request.until_unix_ns()) &&
         fits(request.name(), job.name) && fits(request.user(), job.user) &&
         fits(request.host(), job.host) &&
         std::all_of(request.tags().begin(), request.tags().end(),
                     [&](const std::string& tag) { return HasTag(job, tag); });
}

std::string DayText(uint64_t day) {
  return absl::FormatTime("%Y-%m-%d",
                          absl::FromUnixSeconds(static_cast<int64_t>(day * 86'400)),
                          absl::UTCTimeZone());
}

absl::Status TooMuchTime() {
  return absl::OutOfRangeError(
      "that is more than 500 years of GPU time, which lull cannot add up: ask for less "
      "with --since, --host, --user, --name or --tag");
}

void Summary::Add(const Editions& editions) {
  std::map<std::string, double> weights;
  for (const JobRow& row : editions.jobs) {
    Job& job = jobs_[row.job];
    job.row = row;
    const double weight = weights[row.job] = WeightOf(row);
    job.estimated_us = EstimatedUs(row.idle_ns, weight);
    estimated_us_ += job.estimated_us;
    totals_.set_jobs(totals_.jobs() + 1);
    traced_s_ += row.traced_ns / kSecondNs;
    blocked_s_ += row.sync_blocked_ns / kSecondNs;
    totals_.set_live_jobs(totals_.live_jobs() + row.live);
    if (row.traced_ns > 0) totals_.set_traced_jobs(totals_.traced_jobs() + 1);
    totals_.set_gpu_time_ms(totals_.gpu_time_ms() + row.gpu_ns / kMsNs);
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
    sums.estimated_us += EstimatedUs(row.total_ns, weights[row.job]);
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
    sums.estimated_us += EstimatedUs(row.total_ns, weights[row.job]);
  }
  for (const LateRow& row : editions.late) {
    if (row.cost_ns == 0) continue;
    LateSums& sums = late_[{row.host, row.cause, row.file, row.line, row.function}];
    sums.jobs.insert(row.job);
    sums.cost_ns += row.cost_ns;
    late_s_ += row.cost_ns / kSecondNs;
    totals_.set_late_cost_ns(totals_.late_cost_ns() + row.cost_ns);
  }
}

absl::Status Summary::Fill(const v1::FleetRequest& request,
                           v1::FleetReply* reply) const {
  if (std::max({traced_s_, blocked_s_, late_s_}) > kMostSeconds) return TooMuchTime();
  *reply->mutable_totals() = totals_;
  reply->mutable_totals()->set_hosts(hosts_.size());
  reply->mutable_totals()->set_collectors(collectors_.size());
  reply->mutable_totals()->set_estimated_ms(MsOfUs(estimated_us_));
  uint64_t left_out = 0;
  const auto estimated = [](const Sums& sums) { return sums.estimated_us; };
  for (const auto* entry : Largest(causes_, kMostFleetRows, estimated, &left_out)) {
    v1::FleetCause& row = *reply->add_causes();
    row.set_cause(entry->first);
    row.set_jobs(entry->second.jobs);
    row.set_total_ns(entry->second.total_ns);
    row.set_estimated_ms(MsOfUs(entry->second.estimated_us));
  }
  const uint32_t limit = LimitOf(request);
  FillLines(limit, reply);
  FillGroups(request.group_by(), limit, reply);
  FillJobs(limit, reply);
  FillLate(limit, reply);
  return absl::OkStatus();
}

void Summary::FillLines(uint32_t limit, v1::FleetReply* reply) const {
  uint64_t left_out = 0;
  const auto estimated = [](const Sums& sums) { return sums.estimated_us; };
  for (const auto* entry : Largest(lines_, limit, estimated, &left_out)) {
    v1::FleetLine& row = *reply->add_lines();
    row.set_cause(entry->first.cause);
    row.set_file(entry->first.file);
    row.set_line(entry->first.line);
    row.set_function(entry->first.function);
    row.set_api(entry->first.api);
    row.set_jobs(entry->second.jobs);
    row.set_total_ns(entry->second.total_ns);
    row.set_max_ns(entry->second.max_ns);
    row.set_estimated_ms(MsOfUs(entry->second.estimated_us));
  }
  reply->set_lines_left_out(left_out);
}

void Summary::FillGroups(v1::FleetGroup by, uint32_t limit,
                         v1::FleetReply* reply) const {
  std::map<std::string, Group> groups;
  for (const auto& [id, job] : jobs_) {
    for (const std::string& key : KeysOfGroups(by, job.row)) {
      Group& group = groups[key];
      group.key = key;
      ++group.jobs;
      group.gpu_time_ms += job.row.gpu_ns / kMsNs;
      group.traced_ns += job.row.traced_ns;
      group.busy_ns += job.row.busy_ns;
      group.idle_ns += job.row.idle_ns;
      group.estimated_us += job.estimated_us;
    }
  }
  uint64_t left_out = 0;
  const auto latest = [](const Group& group) { return group.key; };
  const auto estimated = [](const Group& group) { return group.estimated_us; };
  for (const auto* entry : IsByTime(by)
                               ? Largest(groups, limit, latest, &left_out)
                               : Largest(groups, limit, estimated, &left_out)) {
    const Group& group = entry->second;
    v1::FleetGroupRow& row = *reply->add_groups();
    row.set_key(entry->first);
    row.set_jobs(group.jobs);
    row.set_gpu_time_ms(group.gpu_time_ms);
    row.set_traced_ns(group.traced_ns);
    row.set_busy_ns(group.busy_ns);
    row.set_idle_ns(group.idle_ns);
    row.set_estimated_ms(MsOfUs(group.estimated_us));
  }
  reply->set_groups_left_out(left_out);
}

void Summary::FillJobs(uint32_t limit, v1::FleetReply* reply) const {
  uint64_t left_out = 0;
  const auto estimated = [](const Job& job) { return job.estimated_us; };
  for (const auto* entry : Largest(jobs_, limit, estimated, &left_out)) {
    const auto& [of, cause, cause_ns, estimated_us] = entry->second;
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
    row.set_estimated_ms(MsOfUs(estimated_us));
    row.mutable_tags()->Add(of.tags.begin(), of.tags.end());
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
