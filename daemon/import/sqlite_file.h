// A database of a stranger's, read table by table. Nothing of it runs, nothing is
// written beside it, and no question takes longer than its rows.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lull::imports {

class SqliteFile {
 public:
  // FAILED_PRECONDITION where part of it lies in a journal beside it, of which its hash
  // knows nothing.
  static absl::StatusOr<std::unique_ptr<SqliteFile>> Open(const std::string& path);

  // Columns in the order in which they were asked for.
  class Row {
   public:
    explicit Row(sqlite3_stmt* statement) : statement_(statement) {}
    int64_t Number(int column) const {
      return sqlite3_column_int64(statement_, column);
    }
    bool IsNull(int column) const {
      return sqlite3_column_type(statement_, column) == SQLITE_NULL;
    }
    std::string Text(int column) const;  // clean, at most kMaxWireString bytes

   private:
    sqlite3_stmt* statement_;
  };
  using Visit = absl::FunctionRef<absl::Status(const Row&)>;

  // NULL for columns that the table does not have. No such table, or a view of that
  // name: no rows. DATA_LOSS for what cannot be read.
  absl::Status Each(const std::string& table, const std::vector<std::string>& columns,
                    Visit visit);

  // The text of `column` in the row whose column "id" is `id`; "" where there is none.
  // Quick only where "id" is the table's key: HasKey().
  absl::StatusOr<std::string> TextById(const std::string& table,
                                       const std::string& column, int64_t id);
  // "id" is what the rows lie by.
  absl::StatusOr<bool> HasKey(const std::string& table);

 private:
  struct Close {
    void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  using Statement = std::unique_ptr<sqlite3_stmt, Close>;

  explicit SqliteFile(sqlite3* database) : database_(database) {}
  absl::StatusOr<Statement> Prepare(const std::string& sql);
  absl::StatusOr<bool> IsTable(const std::string& name);
  absl::Status Damaged();
  void CountText(sqlite3_stmt* row);
  static int Tick(void* self);

  std::unique_ptr<sqlite3, Close> database_;
  Statement by_id_;
  // Steps of SQLite's machine since the last row.
  uint64_t ticks_ = 0;
  uint64_t text_bytes_ = 0;  // that were read
};

}  // namespace lull::imports
