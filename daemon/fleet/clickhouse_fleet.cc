#include "daemon/fleet/clickhouse_fleet.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/fleet/row_binary.h"
#include "daemon/fleet/summary.h"

namespace lull::fleet {
namespace {

// Of sums: their seconds tell of those that do not fit into 64 bits of nanoseconds.
constexpr uint64_t kMostSeconds = UINT64_MAX / 1'000'000'000 - 1;

// Which rows of a table lie in the partitions that jobs of the request have.
std::string DaysOf(const v1::FleetRequest& request) {
  std::string sql =
      absl::StrCat("day >= toDate(", DayOf(request.since_unix_ns()).days, ")");
  if (request.until_unix_ns() > 0) {
    absl::StrAppend(&sql, " AND day <= toDate(", DayOf(request.until_unix_ns()).days,
                    ")");
  }
  return sql;
}

// The same as IsAskedFor() of summary.h.
std::string JobsOfRequest(const v1::FleetRequest& request) {
  std::string sql = absl::StrCat(" FROM lull_jobs WHERE ", DaysOf(request),
                                 " AND start_unix_ns >= ", request.since_unix_ns());
  if (request.until_unix_ns() > 0) {
    absl::StrAppend(&sql, " AND start_unix_ns < ", request.until_unix_ns());
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

// Asks a server, and takes rows of its answer off the front.
class Reader {
 public:
  Reader(ClickHouse& server, const v1::FleetRequest& request)
      : server_(server),
        jobs_(JobsOfRequest(request)),
        days_(DaysOf(request)),
        limit_(LimitOf(request)) {}

  const std::string& jobs() const { return jobs_; }
  const std::string& days() const { return days_; }
  uint32_t limit() const { return limit_; }
  // Rows of a table other than lull_jobs.
  std::string From(const char* table) const {
    return absl::StrCat(" FROM ", table, " WHERE ", days_, " AND job IN (SELECT job",
                        jobs_, ")");
  }

  absl::Status Ask(const std::string& sql) {
    LULL_ASSIGN_OR_RETURN(answer_,
                          server_.Query(absl::StrCat(sql, " FORMAT RowBinary")));
    rest_ = answer_;
    return absl::OkStatus();
  }
  bool done() const { return rest_.empty(); }
  template <typename... T>
  absl::Status Next(T*... values) {
    if ((Take(&rest_, values) && ...)) return absl::OkStatus();
    return absl::DataLossError("its answer ends within a row");
  }

  // How many rows there are of which `listed` were asked for, and came.
  absl::StatusOr<uint64_t> LeftOut(int listed, const std::string& of) {
    if (listed < static_cast<int>(limit_)) return 0;
    LULL_RETURN_IF_ERROR(Ask(absl::StrCat("SELECT count() FROM (", of, ")")));
    uint64_t all = 0;
    LULL_RETURN_IF_ERROR(Next(&all));
    return all - std::min<uint64_t>(all, listed);
  }

 private:
  ClickHouse& server_;
  const std::string jobs_;
  const std::string days_;
  const uint32_t limit_;
  std::string answer_;
  std::string_view rest_;
};

absl::Status TooMuch() {
  return absl::OutOfRangeError(
      "that is more than 500 years of GPU time, which lull cannot add up: ask for less "
      "with --since, --host, --user, --name or --tag");
}

absl::Status ReadTotals(Reader& reader, v1::FleetTotals* totals) {
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT count(), sum(live), countIf(traced_ns > 0), uniqExact(host), "
      "uniqExact(collector), sumIf(intDiv(duration_ns, 1000000) * greatest(ranks, "
      "1), traced_ns > 0), sum(traced_ns), sum(busy_ns), sum(idle_ns), "
      "sum(explained_ns), sum(sync_blocked_ns), sum(events_lost), "
      "greatest(sum(intDiv(traced_ns, 1000000000)), sum(intDiv(sync_blocked_ns, "
      "1000000000)))",
      reader.jobs())));
  uint64_t jobs, live, traced, hosts, collectors, rank_time, traced_ns, busy, idle,
      explained, blocked, lost, seconds;
  LULL_RETURN_IF_ERROR(reader.Next(&jobs, &live, &traced, &hosts, &collectors,
                                   &rank_time, &traced_ns, &busy, &idle, &explained,
                                   &blocked, &lost, &seconds));
  if (seconds > kMostSeconds) return TooMuch();
  totals->set_jobs(jobs);
  totals->set_live_jobs(live);
  totals->set_traced_jobs(traced);
  totals->set_hosts(hosts);
  totals->set_collectors(collectors);
  totals->set_rank_time_ms(rank_time);
  totals->set_traced_ns(traced_ns);
  totals->set_busy_ns(busy);
  totals->set_idle_ns(idle);
  totals->set_explained_ns(explained);
  totals->set_sync_blocked_ns(blocked);
  totals->set_events_lost(lost);
  LULL_RETURN_IF_ERROR(
      reader.Ask(absl::StrCat("SELECT sum(cost_ns), sum(intDiv(cost_ns, 1000000000))",
                              reader.From("lull_late"))));
  uint64_t cost;
  LULL_RETURN_IF_ERROR(reader.Next(&cost, &seconds));
  if (seconds > kMostSeconds) return TooMuch();
  totals->set_late_cost_ns(cost);
  return absl::OkStatus();
}

absl::Status ReadCauses(Reader& reader, v1::FleetReply* reply) {
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT cause, count(), sum(total_ns) AS total", reader.From("lull_causes"),
      " AND total_ns > 0 GROUP BY cause ORDER BY total DESC, cause")));
  while (!reader.done()) {
    v1::FleetCause& row = *reply->add_causes();
    uint64_t jobs, total;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_cause(), &jobs, &total));
    row.set_jobs(jobs);
    row.set_total_ns(total);
  }
  return absl::OkStatus();
}

absl::Status ReadLines(Reader& reader, v1::FleetReply* reply) {
  constexpr char kKey[] = "cause, file, line, function, api";
  const std::string from =
      absl::StrCat(reader.From("lull_lines"), " AND total_ns > 0 GROUP BY ", kKey);
  LULL_RETURN_IF_ERROR(reader.Ask(
      absl::StrCat("SELECT ", kKey, ", count(), sum(total_ns) AS total, max(max_ns)",
                   from, " ORDER BY total DESC, ", kKey, " LIMIT ", reader.limit())));
  while (!reader.done()) {
    v1::FleetLine& row = *reply->add_lines();
    int32_t line;
    uint64_t jobs, total, most;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_cause(), row.mutable_file(), &line,
                                     row.mutable_function(), row.mutable_api(), &jobs,
                                     &total, &most));
    row.set_line(line);
    row.set_jobs(jobs);
    row.set_total_ns(total);
    row.set_max_ns(most);
  }
  LULL_ASSIGN_OR_RETURN(
      const uint64_t left_out,
      reader.LeftOut(reply->lines_size(), absl::StrCat("SELECT cause", from)));
  reply->set_lines_left_out(left_out);
  return absl::OkStatus();
}

absl::Status ReadJobs(Reader& reader, v1::FleetReply* reply) {
  const std::string of =
      absl::StrCat(reader.jobs(), " ORDER BY idle_ns DESC, job LIMIT ", reader.limit());
  LULL_RETURN_IF_ERROR(reader.Ask(absl::StrCat(
      "SELECT job, cause, total_ns FROM lull_causes WHERE total_ns > 0 AND ",
      reader.days(), " AND job IN (SELECT job", of,
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
      "traced_ns, idle_ns, collector",
      of)));
  while (!reader.done()) {
    v1::FleetJob& row = *reply->add_jobs();
    uint64_t start, duration, traced, idle;
    uint8_t live;
    uint32_t ranks;
    LULL_RETURN_IF_ERROR(reader.Next(row.mutable_id(), row.mutable_name(),
                                     row.mutable_host(), row.mutable_user(), &start,
                                     &duration, &live, &ranks, &traced, &idle,
                                     row.mutable_collector()));
    row.set_start_unix_ns(start);
    row.set_duration_ns(duration);
    row.set_live(live != 0);
    row.set_ranks(ranks);
    row.set_traced_ns(traced);
    row.set_idle_ns(idle);
    row.set_cause(causes[row.id()].name);
    row.set_cause_ns(causes[row.id()].total_ns);
  }
  const uint64_t all = reply->totals().jobs();
  reply->set_jobs_left_out(all - std::min<uint64_t>(all, reply->jobs_size()));
  return absl::OkStatus();
}

absl::Status ReadLate(Reader& reader, v1::FleetReply* reply) {
  constexpr char kKey[] = "host, cause, file, line, function";
  const std::string from =
      absl::StrCat(reader.From("lull_late"), " AND cost_ns > 0 GROUP BY ", kKey);
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
                     v1::FleetReply* reply) {
  Reader reader(server, request);
  LULL_RETURN_IF_ERROR(ReadTotals(reader, reply->mutable_totals()));
  LULL_RETURN_IF_ERROR(ReadCauses(reader, reply));
  LULL_RETURN_IF_ERROR(ReadLines(reader, reply));
  LULL_RETURN_IF_ERROR(ReadJobs(reader, reply));
  return ReadLate(reader, reply);
}

}  // namespace lull::fleet
