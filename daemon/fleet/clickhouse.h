// The tables of tables.h on a server of ClickHouse, 18.16 or newer, by its HTTP
// interface.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "daemon/fleet/column_types.h"
#include "daemon/fleet/row_binary.h"
#include "daemon/fleet/tables.h"
#include "daemon/http/client.h"

namespace lull::fleet {

struct ClickHouseTarget {
  http::Peer peer;
  std::string database = "default";
  std::string user;  // "": the server's default
  std::string password;
};

// `url`: http[s]://HOST[:PORT][/][?database=NAME]; ports are 8123 and 8443 where none
// is given. CLICKHOUSE_USER and CLICKHOUSE_PASSWORD are obeyed, and for https
// LULL_CLICKHOUSE_CERTIFICATE, a PEM file of the CAs to trust. Reads the certificates.
// INVALID_ARGUMENT: the URL or a variable, by its name; NOT_FOUND: no certificates.
absl::StatusOr<ClickHouseTarget> FindClickHouseTarget(
    absl::string_view url, const std::function<std::string(const char*)>& environment);

// The edition of a job that is there.
struct Written {
  uint64_t slot = 0;
  uint64_t version = 0;
  uint64_t stored_ns = 0;
  uint32_t state = 0;
  uint32_t parts = 1;
  uint8_t live = 0;
  uint64_t events = 0;  // of the job, stored by the collector
};

// For one thread, but for Cancel(). Errors name what the server says.
class ClickHouse {
 public:
  // INVALID_ARGUMENT: certificates that are none. `is_over`: as http::Client.
  static absl::StatusOr<std::unique_ptr<ClickHouse>> Make(
      ClickHouseTarget target, std::function<bool()> is_over = nullptr);

  // Makes the tables and views that are not there. FAILED_PRECONDITION where one has
  // other columns.
  absl::Status Prepare();

  // By the id of the job, of those of `ids` that are there.
  absl::StatusOr<std::map<std::string, Written>> Find(
      const std::vector<std::string>& ids);

  // Jobs after all else. After an error any part of the rows may be there.
  // FAILED_PRECONDITION: the server refused, so that nothing comes later; after other
  // errors something may.
  absl::Status Write(const Editions& editions);

  // The answer to any other SQL, in the format that it asks for. `parameters`: of the
  // URL, "&max_execution_time=9".
  absl::StatusOr<std::string> Query(const std::string& sql,
                                    const std::string& parameters = "") {
    return Post(parameters, sql);
  }

  // The same, by then: DEADLINE_EXCEEDED. Nor does the server go on for nobody.
  absl::StatusOr<std::string> QueryUntil(absl::Time deadline, const std::string& sql);

  // As http::Client.
  void Cancel() { client_->Cancel(); }
  void Resume() { client_->Resume(); }

  std::string url() const { return target_.peer.url(); }

 private:
  ClickHouse(ClickHouseTarget target, std::unique_ptr<http::Client> client)
      : target_(std::move(target)), client_(std::move(client)) {}

  // `parameters`: what follows the database's in the URL: "&query=..."
  absl::StatusOr<std::string> Post(const std::string& parameters, std::string body,
                                   absl::Duration patience = absl::Minutes(1));
  absl::StatusOr<std::vector<ColumnType>> ColumnsOf(const std::string& table);
  template <typename Row>
  absl::Status PrepareTable();
  template <typename Row>
  absl::Status Insert(const std::vector<Row>& rows);

  const ClickHouseTarget target_;
  const std::unique_ptr<http::Client> client_;
  std::string insert_settings_;  // parameters of the URL
};

}  // namespace lull::fleet
