#include "daemon/fleet/clickhouse_fleet.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"
#include "daemon/fleet/row_binary.h"
#include "daemon/fleet/summary.h"

namespace lull::fleet {
namespace {

constexpr uint32_t kMostCauses = 100;  // there are some thirty

// As WeightOf() of job_row.h.
constexpr char kWeight[] =
    "if(traced_ns = 0, 1.0, greatest(1.0, toFloat64(gpu_ns) / toFloat64(traced_ns)))";

// Microseconds of a row, as EstimatedUs() of summary.cc; `column`: in nanoseconds.
std::string Estimated(const char* column, const char* weight = "weight") {
  return absl::StrCat("toUInt64(least(1e16, toFloat64(", column, ") * ", weight,
                      " / 1000.0))");
}

// The same as IsAskedFor() of summary.h.
std::string JobsOfRequest(const v1::FleetRequest& request) {
  std::string sql = absl::StrCat(
      " FROM lull_jobs WHERE start_unix_ns + duration_ns >= ", request.since_unix_ns());
  if (request.until_unix_ns() > 0) {
    absl::StrAppend(&sql, " AND start_unix_ns + duration_ns < ",
                    request.until_unix_ns());
  }
  const auto add = [&sql](const char* column, const std::string& wanted) {
    if (!wanted.empty()) absl::StrAppend(&sql, " AND ", column, " = ", Quoted(wanted));
  };
  add("name", request.name());
  add("user", request.user());
  add("host", request.host());
  for (const std::string& tag : request.tags()) {
    absl::StrAppend(&sql, " AND has(tags, ", Quoted(tag), ")");
  }
  return sql;
}

// As KeysOfGroups() of summary.cc, but days are numbers.
std::string GroupKeySql(v1::FleetGroup group) {
  const std::string day =
      absl::StrCat("greatest(toUInt64(", kFirstDay, "), least(toUInt64(", kLastDay,
                   "), intDiv(start_unix_ns + duration_ns, 86400000000000)))");
  switch (group) {
    case v1::FLEET_GROUP_HOST:
      return "host";
    case v1::FLEET_GROUP_NAME:
      return "name";
    case v1::FLEET_GROUP_TAG:
      return "arrayJoin(arrayDistinct(if(empty(tags), [''], tags)))";
    case v1::FLEET_GROUP_DAY:
      return day;
    case v1::FLEET_GROUP_WEEK:
      return absl::StrCat(day, " - modulo(", day, " + 3, 7)");
    default:
      return "user";
  }
}

// Others may write into the tables, too.
void Clean(std::string* text) { *text = CleanText(*text); }
void Clean(std::vector<std::string>* texts) {
  for (std::string& text : *texts) Clean(&text);
}
template <typename T>
void Clean(T*) {}

// Asks a server, and takes rows of its answer off the front.
class Reader {
 public:
  Reader(ClickHouse& server, const v1::FleetRequest& request, absl::Time deadline)
      : server_(server),
        jobs_(JobsOfRequest(request)),
        limit_(LimitOf(request)),
        deadline_(deadline) {}

  const std::string& jobs() const { return jobs_; }
  uint32_t limit() const { return limit_; }
  // No job that is asked for began before this day.
  void SetFirstDay(uint64_t day) { first_day_ = day; }
  uint64_t first_day() const { return first_day_; }
  // Rows of a table with `columns`, among them total_ns, and the weight of their jobs.
  std::string Weighted(const char* table, const char* columns) const {
    return absl::StrCat(" FROM (SELECT job, ", columns, " FROM ", table,
                        " WHERE total_ns > 0 AND day >= toDate(", first_day_,
                        ") AND job IN (SELECT job", jobs_,
                        ")) AS of_jobs ALL INNER JOIN (SELECT job, ", kWeight,
                        " AS weight", jobs_, ") AS weights USING job");
  }

  absl::Status Ask(const std::string& sql) {
    rows_left_ = std::max(limit_, kMostCauses);
    LULL_ASSIGN_OR_RETURN(
        answer_, server_.QueryUntil(deadline_, absl::StrCat(sql, " FORMAT RowBinary")));
    rest_ = answer_;
    return absl::OkStatus();
  }
  bool done() const { return rest_.empty(); }
  template <typename... T>
  absl::Status Next(T*... values) {
    if (rows_left_ == 0) {
      return absl::DataLossError("its answer has more rows than were asked for");
    }
    --rows_left_;
    if (!(Take(&rest_, values) && ...)) {
      return absl::DataLossError("its answer ends within a row");
    }
    (Clean(values), ...);
    return absl::OkStatus();
  }
  // Of an answer of one row.
  template <typename... T>
  absl::Status Only(T*... values) {
    LULL_RETURN_IF_ERROR(Next(values...));
    if (done()) return absl::OkStatus();
    return absl::DataLossError("its answer is no row of numbers");
  }

  // How many rows there are of which `listed` were asked for, and came.
  absl::StatusOr<uint64_t> LeftOut(int listed, const std::string& of) {
    if (listed < static_cast<int>(limit_)) return 0;
    LULL_RETURN_IF_ERROR(Ask(absl::StrCat("SELECT count() FROM (", of, ")")));
    uint64_t all = 0;
    LULL_RETURN_IF_ERROR(Only(&all));
    return all - std::min<uint64_t>(all, listed);
  }

 private:
  ClickHouse& server_;
  const std::string jobs_;
  const uint32_t limit_;
  const absl::Time deadline_;
  uint64_t first_day_ = 0;
  uint32_t rows_left_ = 0;
  std::string answer_;
  std::string_view rest_;
};

absl::Status ReadTotals(Reader& reader, v1::FleetTotals* totals) {
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT count(), sum(live), countIf(traced_ns > 0), uniqExact(host), "
      "uniqExact(collector), sum(intDiv(gpu_ns, 1000000)), sum(traced_ns), "
      "sum(busy_ns), sum(idle_ns), "
      "sum(explained_ns), sum(sync_blocked_ns), sum(events_lost), sum(",
      Estimated("idle_ns", kWeight),
      "), greatest(sum(intDiv(traced_ns, 1000000000)), sum(intDiv(sync_blocked_ns, "
      "1000000000))), toUInt64(toUInt16(min(day)))",
      reader.jobs())));
  uint64_t jobs, live, traced, hosts, collectors, gpu_time, traced_ns, busy, idle,
      explained, blocked, lost, estimated, seconds, day;
  LULL_RETURN_IF_ERROR(reader.Only(&jobs, &live, &traced, &hosts, &collectors,
                                   &gpu_time, &traced_ns, &busy, &idle, &explained,
                                   &blocked, &lost, &estimated, &seconds, &day));
  if (seconds > kMostSeconds) return TooMuchTime();
  reader.SetFirstDay(day);
  totals->set_jobs(jobs);
  totals->set_live_jobs(live);
  totals->set_traced_jobs(traced);
  totals->set_hosts(hosts);
  totals->set_collectors(collectors);
  totals->set_gpu_time_ms(gpu_time);
  totals->set_traced_ns(traced_ns);
  totals->set_busy_ns(busy);
  totals->set_idle_ns(idle);
  totals->set_explained_ns(explained);
  totals->set_sync_blocked_ns(blocked);
  totals->set_events_lost(lost);
  totals->set_estimated_ms(MsOfUs(estimated));
  return absl::OkStatus();
}

absl::Status ReadCauses(Reader& reader, v1::FleetReply* reply) {
  LULL_RETURN_IF_ERROR(reader.Ask(
      absl::StrCat("SELECT cause, count(), sum(total_ns), sum(", Estimated("total_ns"),
                   ") AS estimated", reader.Weighted("lull_causes", "cause, total_ns"),
                   " GROUP BY cause ORDER BY estimated DESC, cause")));
  while (!reader.done()) {
    v1::FleetCause& row = *reply->add_causes();
    uint64_t jobs, total, estimated;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_cause(), &jobs, &total, &estimated));
    row.set_jobs(jobs);
    row.set_total_ns(total);
    row.set_estimated_ms(MsOfUs(estimated));
  }
  return absl::OkStatus();
}

absl::Status ReadLines(Reader& reader, v1::FleetReply* reply) {
  constexpr char kKey[] = "cause, file, line, function, api";
  const std::string from =
      absl::StrCat(reader.Weighted("lull_lines",
                                   "cause, file, line, function, api, "
                                   "total_ns, max_ns"),
                   " GROUP BY ", kKey);
  LULL_RETURN_IF_ERROR(reader.Ask(
      absl::StrCat("SELECT ", kKey, ", count(), sum(total_ns), max(max_ns), sum(",
                   Estimated("total_ns"), ") AS estimated", from,
                   " ORDER BY estimated DESC, ", kKey, " LIMIT ", reader.limit())));
  while (!reader.done()) {
    v1::FleetLine& row = *reply->add_lines();
    int32_t line;
    uint64_t jobs, total, most, estimated;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_cause(), row.mutable_file(), &line,
                                     row.mutable_function(), row.mutable_api(), &jobs,
                                     &total, &most, &estimated));
    row.set_line(line);
    row.set_jobs(jobs);
    row.set_total_ns(total);
    row.set_max_ns(most);
    row.set_estimated_ms(MsOfUs(estimated));
  }
  LULL_ASSIGN_OR_RETURN(
      const uint64_t left_out,
      reader.LeftOut(reply->lines_size(), absl::StrCat("SELECT cause", from)));
  reply->set_lines_left_out(left_out);
  return absl::OkStatus();
}

absl::Status ReadGroups(Reader& reader, v1::FleetGroup by, v1::FleetReply* reply) {
  const std::string from = absl::StrCat(" FROM (SELECT ", GroupKeySql(by),
                                        " AS key, gpu_ns, traced_ns, busy_ns, idle_ns",
                                        reader.jobs(), ") GROUP BY key");
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT toString(key) AS text, count(), sum(intDiv(gpu_ns, 1000000)), "
      "sum(traced_ns), sum(busy_ns), sum(idle_ns), sum(",
      Estimated("idle_ns", kWeight), ") AS estimated", from, " ORDER BY ",
      IsByTime(by) ? "key DESC" : "estimated DESC, key", " LIMIT ", reader.limit())));
  while (!reader.done()) {
    v1::FleetGroupRow& row = *reply->add_groups();
    uint64_t jobs, gpu_time, traced, busy, idle, estimated;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_key(), &jobs, &gpu_time, &traced,
                                     &busy, &idle, &estimated));
    if (IsByTime(by)) {
      uint64_t day = 0;
      if (!absl::SimpleAtoi(row.key(), &day) || day > kLastDay) {
        return absl::DataLossError("its answer has a day that is none");
      }
      row.set_key(DayText(day));
    }
    row.set_jobs(jobs);
    row.set_gpu_time_ms(gpu_time);
    row.set_traced_ns(traced);
    row.set_busy_ns(busy);
    row.set_idle_ns(idle);
    row.set_estimated_ms(MsOfUs(estimated));
  }
  LULL_ASSIGN_OR_RETURN(
      const uint64_t left_out,
      reader.LeftOut(reply->groups_size(), absl::StrCat("SELECT key", from)));
  reply->set_groups_left_out(left_out);
  return absl::OkStatus();
}

absl::Status ReadJobs(Reader& reader, v1::FleetReply* reply) {
  const std::string of =
      absl::StrCat(reader.jobs(), " ORDER BY ", Estimated("idle_ns", kWeight),
                   " DESC, job LIMIT ", reader.limit());
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT job, cause, total_ns FROM lull_causes WHERE total_ns > 0 AND day >= "
      "toDate(",
      reader.first_day(), ") AND job IN (SELECT job", of,
      ") ORDER BY job, total_ns DESC, cause LIMIT 1 BY job")));
  struct Cause {
    std::string name;
    uint64_t total_ns = 0;
  };
  std::map<std::string, Cause> causes;
  while (!reader.done()) {
    std::string job;
    Cause cause;
    LULL_RETURN_IF_ERROR(reader.Next(&job, &cause.name, &cause.total_ns));
    causes[job] = std::move(cause);
  }
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT job, name, host, user, start_unix_ns, duration_ns, live, ranks, "
      "traced_ns, idle_ns, collector, tags, ",
      Estimated("idle_ns", kWeight), of)));
  while (!reader.done()) {
    v1::FleetJob& row = *reply->add_jobs();
    uint64_t start, duration, traced, idle, estimated;
    uint8_t live;
    uint32_t ranks;
    std::vector<std::string> tags;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_id(), row.mutable_name(),
                                     row.mutable_host(), row.mutable_user(), &start,
                                     &duration, &live, &ranks, &traced, &idle,
                                     row.mutable_collector(), &tags, &estimated));
    row.set_start_unix_ns(start);
    row.set_duration_ns(duration);
    row.set_live(live != 0);
    row.set_ranks(ranks);
    row.set_traced_ns(traced);
    row.set_idle_ns(idle);
    row.set_cause(causes[row.id()].name);
    row.set_cause_ns(causes[row.id()].total_ns);
    row.set_estimated_ms(MsOfUs(estimated));
    row.mutable_tags()->Add(tags.begin(), tags.end());
  }
  const uint64_t all = reply->totals().jobs();
  reply->set_jobs_left_out(all - std::min<uint64_t>(all, reply->jobs_size()));
  return absl::OkStatus();
}

// They stand with the first job of a run, whichever of its jobs is asked for.
absl::Status ReadLate(Reader& reader, const v1::FleetRequest& request,
                      v1::FleetReply* reply) {
  constexpr char kKey[] = "host, cause, file, line, function";
  std::string from = absl::StrCat(
      " FROM lull_late WHERE cost_ns > 0 AND job IN (SELECT run", reader.jobs(), ")");
  if (!request.host().empty()) {
    absl::StrAppend(&from, " AND host = ", Quoted(request.host()));
  }
  LULL_RETURN_IF_ERROR(reader.Ask(
      absl::StrCat("SELECT sum(cost_ns), sum(intDiv(cost_ns, 1000000000))", from)));
  uint64_t sum, seconds;
  LULL_RETURN_IF_ERROR(reader.Only(&sum, &seconds));
  if (seconds > kMostSeconds) return TooMuchTime();
  reply->mutable_totals()->set_late_cost_ns(sum);
  absl::StrAppend(&from, " GROUP BY ", kKey);
  LULL_RETURN_IF_ERROR(reader.Ask(
      absl::StrCat("SELECT ", kKey, ", uniqExact(job), sum(cost_ns) AS cost", from,
                   " ORDER BY cost DESC, ", kKey, " LIMIT ", reader.limit())));
  while (!reader.done()) {
    v1::FleetLate& row = *reply->add_late();
    int32_t line;
    uint64_t jobs, cost;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_host(), row.mutable_cause(),
                                     row.mutable_file(), &line, row.mutable_function(),
                                     &jobs, &cost));
    row.set_line(line);
    row.set_jobs(jobs);
    row.set_cost_ns(cost);
  }
  LULL_ASSIGN_OR_RETURN(
      const uint64_t left_out,
      reader.LeftOut(reply->late_size(), absl::StrCat("SELECT cause", from)));
  reply->set_late_left_out(left_out);
  return absl::OkStatus();
}

}  // namespace

std::string Quoted(absl::string_view text) {
  std::string sql = "'";
  for (char c : text) {
    if (absl::ascii_isalnum(c)) {
      sql += c;
    } else {
      absl::StrAppend(&sql, "\\x",
                      absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return sql + "'";
}

absl::Status FleetOf(ClickHouse& server, const v1::FleetRequest& request,
                     absl::Time deadline, v1::FleetReply* reply) {
  Reader reader(server, request, deadline);
  LULL_RETURN_IF_ERROR(ReadTotals(reader, reply->mutable_totals()));
  LULL_RETURN_IF_ERROR(ReadCauses(reader, reply));
  LULL_RETURN_IF_ERROR(ReadLines(reader, reply));
  LULL_RETURN_IF_ERROR(ReadGroups(reader, request.group_by(), reply));
  LULL_RETURN_IF_ERROR(ReadJobs(reader, reply));
  return ReadLate(reader, request, reply);
}

}  // namespace lull::fleet
