// A thin layer over one SQLite connection: prepared statements that are kept,
// arguments bound by type, errors as absl::Status with the file's name.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/base/status.h"

namespace lull::storage {

// DATA_LOSS, and what the user can do about it. `what`: how it was noticed.
absl::Status CorruptDatabase(const std::string& path, const std::string& what);

struct Blob {
  std::string_view bytes;
};
struct OwnedBlob {
  std::string bytes;
};

// The current row of a running query; columns count from 0. Views are valid until
// the callback returns.
class Row {
 public:
  explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
  int64_t Int(int column) const { return sqlite3_column_int64(statement_, column); }
  uint64_t Uint(int column) const { return static_cast<uint64_t>(Int(column)); }
  uint32_t Uint32(int column) const { return static_cast<uint32_t>(Int(column)); }
  double Real(int column) const { return sqlite3_column_double(statement_, column); }
  std::string_view Bytes(int column) const;
  std::string Text(int column) const { return std::string(Bytes(column)); }

 private:
  sqlite3_stmt* statement_;
};

class Database {
 public:
  // `flags` as for sqlite3_open_v2.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const std::string& path,
                                                        int flags);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // `sql` must live as long as the program: its address is the key of the kept
  // statement.
  template <typename... Args>
  absl::Status Execute(const char* sql, const Args&... args) {
    return Query(
        sql, [](const Row&) {}, args...);
  }

  template <typename Callback, typename... Args>
  absl::Status Query(const char* sql, Callback&& callback, const Args&... args) {
    sqlite3_stmt* statement = Prepare(sql);
    if (statement == nullptr) return Error();
    if (fault_ != nullptr) LULL_RETURN_IF_ERROR(fault_(sql));
    int index = 0;
    (Bind(statement, ++index, args), ...);
    int rc = sqlite3_step(statement);
    for (; rc == SQLITE_ROW; rc = sqlite3_step(statement)) callback(Row(statement));
    absl::Status status = rc == SQLITE_DONE ? absl::OkStatus() : Error();
    sqlite3_reset(statement);
    return status;
  }

  // Any number of statements, without arguments or results.
  absl::Status Script(const char* sql);
  // First column of the last row; 0 where there is none.
  template <typename... Args>
  absl::StatusOr<int64_t> Value(const char* sql, const Args&... args) {
    int64_t value = 0;
    LULL_RETURN_IF_ERROR(Query(
        sql, [&value](const Row& row) { value = row.Int(0); }, args...));
    return value;
  }

  // A function that statements of ours may call, with any number of arguments; but
  // nothing that is stored in the file.
  absl::Status AddFunction(const char* name,
                           void (*function)(sqlite3_context*, int, sqlite3_value**));

  // For tests. `fault` is called before each statement of Execute and Query; if it
  // returns an error, that is the result. It runs on the thread of whoever uses the
  // database, and may use the database itself.
  void InjectFault(std::function<absl::Status(std::string_view sql)> fault) {
    fault_ = std::move(fault);
  }

  int64_t last_insert_id() const { return sqlite3_last_insert_rowid(db_); }
  bool in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }
  bool read_only() const { return sqlite3_db_readonly(db_, "main") == 1; }
  const std::string& path() const { return path_; }

 private:
  Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}

  sqlite3_stmt* Prepare(const char* sql);
  absl::Status Error() const;

  template <typename T>
  static void Bind(sqlite3_stmt* statement, int index, const T& value) {
    if constexpr (std::is_same_v<T, Blob> || std::is_same_v<T, OwnedBlob>) {
      sqlite3_bind_blob64(statement, index, value.bytes.data(), value.bytes.size(),
                          SQLITE_STATIC);
    } else if constexpr (std::is_floating_point_v<T>) {
      sqlite3_bind_double(statement, index, value);
    } else if constexpr (std::is_integral_v<T>) {
      sqlite3_bind_int64(statement, index, static_cast<int64_t>(value));
    } else {
      std::string_view text = value;
      sqlite3_bind_text64(statement, index, text.data(), text.size(), SQLITE_STATIC,
                          SQLITE_UTF8);
    }
  }

  sqlite3* db_;
  std::string path_;
  absl::flat_hash_map<const char*, sqlite3_stmt*> statements_;
  std::function<absl::Status(std::string_view sql)> fault_;
};

}  // namespace lull::storage
