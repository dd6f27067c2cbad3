#include "daemon/fleet/clickhouse.h"

#include <algorithm>
#include <optional>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "daemon/base/pem.h"
#include "daemon/base/status.h"
#include "daemon/base/tcp_address.h"
#include "daemon/base/text.h"
#include "daemon/words/format.h"

namespace lull::fleet {
namespace {

constexpr size_t kMostOfAMessage = 300;  // bytes of what a server says
constexpr size_t kIdsOfAQuery = 1000;    // a query has 256 KiB at most

// What follows a '?' may be a secret, and is not told.
absl::Status Complain(absl::string_view url, absl::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("--clickhouse \"", url.substr(0, url.find('?')), "\" ", what,
                   ": give http://HOST:PORT or https://HOST:PORT, and ?database=NAME "
                   "behind it where it is not the default one; user and password are "
                   "those of CLICKHOUSE_USER and CLICKHOUSE_PASSWORD"));
}

// Identifiers come from here alone, so none needs quotes.
bool IsIdentifier(absl::string_view text) {
  return !text.empty() && !absl::ascii_isdigit(text[0]) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return absl::ascii_isalnum(c) || c == '_'; });
}

bool FitsHeader(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return !absl::ascii_iscntrl(c); });
}

std::string Escaped(absl::string_view text) {
  std::string out;
  for (char c : text) {
    if (absl::ascii_isalnum(c)) {
      out += c;
    } else {
      absl::StrAppend(&out, "%",
                      absl::Hex(static_cast<unsigned char>(c), absl::kZeroPad2));
    }
  }
  return out;
}

absl::StatusOr<Written> TakeWritten(std::string_view* data, std::string* job) {
  Written written;
  if (Take(data, job) && Take(data, &written.slot) && Take(data, &written.version) &&
      Take(data, &written.stored_ns) && Take(data, &written.state) &&
      Take(data, &written.parts) && Take(data, &written.live) &&
      Take(data, &written.events)) {
    return written;
  }
  return absl::DataLossError("its answer ends within a row");
}

std::string ListOf(const std::vector<ColumnType>& columns) {
  return absl::StrJoin(columns, ", ", [](std::string* out, const ColumnType& column) {
    absl::StrAppend(out, column.name);
  });
}

template <typename Row>
std::string DataTable() {
  return absl::StrCat(Row::kName, "_data");
}

template <typename Row>
constexpr bool kIsJob = std::is_same_v<Row, JobRow>;

// One row a job, or a row for each key in each of a job's two slots. What is replaced
// is what has the lower version.
template <typename Row>
std::string MakeTable() {
  const std::vector<ColumnType> columns = ColumnTypes<Row>();
  const std::string order =
      kIsJob<Row> ? "job" : absl::StrCat("(job, slot, ", Row::kKey, ")");
  return absl::StrCat(
      "CREATE TABLE IF NOT EXISTS ", DataTable<Row>(), " (",
      absl::StrJoin(columns, ", ",
                    [](std::string* out, const ColumnType& column) {
                      absl::StrAppend(out, column.name, " ", column.type);
                    }),
      ") ENGINE = ReplacingMergeTree(version) PARTITION BY day ORDER BY ", order);
}

template <typename Row>
std::string MakeView() {
  std::vector<ColumnType> columns = ColumnTypes<Row>();
  std::erase_if(columns, [](const ColumnType& column) {
    return column.name == "slot" || column.name == "version";
  });
  std::string sql =
      absl::StrCat("CREATE VIEW IF NOT EXISTS ", Row::kName, " AS SELECT ",
                   ListOf(columns), " FROM ", DataTable<Row>(), " FINAL");
  if (!kIsJob<Row>) {
    absl::StrAppend(&sql,
                    " WHERE (job, slot, version) IN (SELECT job, slot, version "
                    "FROM ",
                    DataTable<JobRow>(), " FINAL)");
  }
  return sql;
}

}  // namespace

absl::StatusOr<ClickHouseTarget> FindClickHouseTarget(
    absl::string_view url, const std::function<std::string(const char*)>& environment) {
  ClickHouseTarget target;
  if (absl::StrContains(url, "@")) {  // a secret, which would be in logs
    return absl::InvalidArgumentError(
        "--clickhouse names a user: set CLICKHOUSE_USER and CLICKHOUSE_PASSWORD");
  }
  absl::string_view rest = url;
  if (absl::ConsumePrefix(&rest, "https://")) {
    target.peer.tls = true;
  } else if (!absl::ConsumePrefix(&rest, "http://")) {
    return Complain(url, "is no URL of http");
  }
  const size_t query = rest.find('?');
  if (query != absl::string_view::npos) {
    absl::string_view parameter = rest.substr(query + 1);
    if (!absl::ConsumePrefix(&parameter, "database=") || !IsIdentifier(parameter)) {
      return Complain(url, "asks for what is no ?database=NAME");
    }
    target.database = std::string(parameter);
    rest = rest.substr(0, query);
  }
  rest = absl::StripSuffix(rest, "/");
  if (absl::StrContains(rest, "/")) return Complain(url, "has a path");
  std::optional<TcpAddress> address = ParseTcpAddress(rest);
  if (!address) {
    address = ParseTcpAddress(absl::StrCat(rest, target.peer.tls ? ":8443" : ":8123"));
  }
  if (!address) return Complain(url, "has no HOST:PORT");
  target.peer.address = *std::move(address);
  target.user = environment("CLICKHOUSE_USER");
  target.password = environment("CLICKHOUSE_PASSWORD");
  if (!FitsHeader(target.user) || !FitsHeader(target.password)) {
    return absl::InvalidArgumentError(
        "CLICKHOUSE_USER or CLICKHOUSE_PASSWORD has a control character in it, the "
        "end of a line perhaps");
  }
  if (!target.peer.tls) return target;
  const std::string certificate = environment("LULL_CLICKHOUSE_CERTIFICATE");
  if (!certificate.empty()) {
    LULL_ASSIGN_OR_RETURN(target.peer.roots, ReadPem(certificate));
    return target;
  }
  absl::StatusOr<std::string> roots = ReadSystemRoots();
  if (!roots.ok()) {
    return absl::NotFoundError(absl::StrCat(
        roots.status().message(), "; name a PEM file in LULL_CLICKHOUSE_CERTIFICATE"));
  }
  target.peer.roots = *std::move(roots);
  return target;
}

absl::StatusOr<std::unique_ptr<ClickHouse>> ClickHouse::Make(
    ClickHouseTarget target, std::function<bool()> is_over) {
  LULL_ASSIGN_OR_RETURN(auto client,
                        http::Client::Make(target.peer, std::move(is_over)));
  return std::unique_ptr<ClickHouse>(
      new ClickHouse(std::move(target), std::move(client)));
}

absl::StatusOr<std::string> ClickHouse::QueryUntil(absl::Time deadline,
                                                   const std::string& sql) {
  const absl::Duration left = deadline - absl::Now();
  if (left <= absl::ZeroDuration()) {
    return absl::DeadlineExceededError("no answer in time");
  }
  return Post(absl::StrCat("&max_execution_time=",
                           absl::ToInt64Seconds(absl::Ceil(left, absl::Seconds(1)))),
              sql, left);
}

absl::StatusOr<std::string> ClickHouse::Post(const std::string& parameters,
                                             std::string body,
                                             absl::Duration patience) {
  http::Client::Headers headers;
  if (!target_.user.empty()) headers.emplace_back("X-ClickHouse-User", target_.user);
  if (!target_.password.empty()) {
    headers.emplace_back("X-ClickHouse-Key", target_.password);
  }
  LULL_ASSIGN_OR_RETURN(
      http::Response response,
      client_->Post(absl::StrCat("/?database=", target_.database, parameters), headers,
                    std::move(body), patience));
  if (response.status == 200) return std::move(response.body);
  const std::string said = absl::StrCat(
      "it answers ", response.status, ": ",
      Printable(CleanText(std::string(absl::StripAsciiWhitespace(response.body)),
                          kMostOfAMessage)));
  // ClickHouse's own are 500 and below; others are those of proxies that gave up.
  return response.status > 500 ? absl::UnavailableError(said)
                               : absl::FailedPreconditionError(said);
}

absl::StatusOr<std::vector<ColumnType>> ClickHouse::ColumnsOf(
    const std::string& table) {
  LULL_ASSIGN_OR_RETURN(
      const std::string answer,
      Query(absl::StrCat("SELECT name, type FROM system.columns WHERE database = '",
                         target_.database, "' AND table = '", table,
                         "' FORMAT RowBinary")));
  std::string_view data = answer;
  std::vector<ColumnType> columns;
  while (!data.empty()) {
    ColumnType& column = columns.emplace_back();
    if (!Take(&data, &column.name) || !Take(&data, &column.type)) {
      return absl::DataLossError(
          absl::StrCat("its answer of ", answer.size(), " bytes ends within a row"));
    }
  }
  return columns;
}

template <typename Row>
absl::Status ClickHouse::PrepareTable() {
  const std::string table = DataTable<Row>();
  LULL_ASSIGN_OR_RETURN(auto there, ColumnsOf(table));
  if (there.empty()) {
    LULL_RETURN_IF_ERROR(Query(MakeTable<Row>()).status());
    LULL_ASSIGN_OR_RETURN(there, ColumnsOf(table));
  }
  if (there != ColumnTypes<Row>()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "its table ", target_.database, ".", table,
        " has other columns than this release of lulld writes: give another "
        "?database=, or delete the tables and views lull_* there; they are written "
        "anew from what lulld still has"));
  }
  LULL_ASSIGN_OR_RETURN(const auto view, ColumnsOf(Row::kName));
  return view.empty() ? Query(MakeView<Row>()).status() : absl::OkStatus();
}

absl::Status ClickHouse::Prepare() {
  // Where a server collects inserts itself, it is to have written them before it says
  // so, whatever its settings are; older ones do not know this one.
  LULL_ASSIGN_OR_RETURN(
      const std::string collects,
      Query("SELECT name FROM system.settings WHERE name = 'async_insert' "
            "FORMAT RowBinary"));
  insert_settings_ = collects.empty() ? "" : "&async_insert=0";
  absl::Status status = PrepareTable<JobRow>();
  Editions().ForEachTable([&]<typename Row>(const std::vector<Row>&) {
    if (status.ok()) status = PrepareTable<Row>();
  });
  return status;
}

absl::StatusOr<std::map<std::string, Written>> ClickHouse::Find(
    const std::vector<std::string>& ids) {
  std::map<std::string, Written> jobs;
  for (size_t at = 0; at < ids.size(); at += kIdsOfAQuery) {
    std::vector<std::string> quoted;
    for (size_t i = at; i < std::min(at + kIdsOfAQuery, ids.size()); ++i) {
      quoted.push_back(absl::StrCat("'", ids[i], "'"));
    }
    LULL_ASSIGN_OR_RETURN(
        const std::string answer,
        Query(absl::StrCat("SELECT job, slot, version, stored_ns, state, parts, live, "
                           "events_stored FROM ",
                           DataTable<JobRow>(), " FINAL WHERE job IN (",
                           absl::StrJoin(quoted, ", "), ") FORMAT RowBinary")));
    std::string_view data = answer;
    while (!data.empty()) {
      std::string job;
      LULL_ASSIGN_OR_RETURN(const Written written, TakeWritten(&data, &job));
      jobs[job] = written;
    }
  }
  return jobs;
}

template <typename Row>
absl::Status ClickHouse::Insert(const std::vector<Row>& rows) {
  if (rows.empty()) return absl::OkStatus();
  std::string body;
  for (const Row& row : rows) PutRow(row, &body);
  const std::string sql =
      absl::StrCat("INSERT INTO ", DataTable<Row>(), " (", ListOf(ColumnTypes<Row>()),
                   ") FORMAT RowBinary");
  return Post(absl::StrCat(insert_settings_, "&query=", Escaped(sql)), std::move(body))
      .status();
}

absl::Status ClickHouse::Write(const Editions& editions) {
  absl::Status status;
  editions.ForEachTable([&](const auto& rows) {
    if (status.ok()) status = Insert(rows);
  });
  return status;
}

}  // namespace lull::fleet
