#include "daemon/import/sqlite_file.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/base/text.h"

namespace lull::imports {
namespace {

// A row of a table takes some dozens of steps. What takes more is no scan of a table.
constexpr int kStepsOfATick = 10'000;
constexpr uint64_t kMostTicks = 1'000;
constexpr int kLongestValue = 16 << 20;
// Limit of all texts: a page of a hostile file can be part of any number of rows.
constexpr uint64_t kMostText = uint64_t{4} << 30;

// SQLite's own name for a file: with a path in which nothing means anything.
// Immutable: no lock, no journal, nothing beside it.
std::string UriOf(const std::string& path) {
  std::string uri = "file://";
  for (char c : std::filesystem::absolute(path).string()) {
    if (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '/' || c == '.' ||
        c == '_' || c == '-') {
      uri.push_back(c);
    } else {
      absl::StrAppend(&uri, "%", absl::BytesToHexString(std::string(1, c)));
    }
  }
  return uri + "?immutable=1";
}

absl::Status CheckJournals(const std::string& path) {
  for (const char* end : {"-wal", "-journal"}) {
    std::error_code error;
    const uintmax_t bytes = std::filesystem::file_size(path + end, error);
    if (error || bytes == 0) continue;
    return absl::FailedPreconditionError(absl::StrCat(
        "somebody writes it, or was cut off: part of it may lie in the file ", path,
        end,
        "; close it there, or merge it (sqlite3 FILE 'PRAGMA journal_mode=DELETE')"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string SqliteFile::Row::Text(int column) const {
  const auto* text =
      reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (text == nullptr) return {};
  const auto size = static_cast<size_t>(sqlite3_column_bytes(statement_, column));
  return CleanText(std::string_view(text, size));
}

absl::StatusOr<std::unique_ptr<SqliteFile>> SqliteFile::Open(const std::string& path) {
  LULL_RETURN_IF_ERROR(CheckJournals(path));
  sqlite3* opened = nullptr;
  const int status = sqlite3_open_v2(UriOf(path).c_str(), &opened,
                                     SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
  std::unique_ptr<SqliteFile> file(new SqliteFile(opened));
  if (status != SQLITE_OK) return absl::DataLossError("SQLite cannot open it");
  sqlite3_db_config(opened, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  sqlite3_db_config(opened, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_limit(opened, SQLITE_LIMIT_LENGTH, kLongestValue);
  sqlite3_progress_handler(opened, kStepsOfATick, &SqliteFile::Tick, file.get());
  return file;
}

int SqliteFile::Tick(void* self) {
  return ++static_cast<SqliteFile*>(self)->ticks_ > kMostTicks ? 1 : 0;
}

absl::Status SqliteFile::Damaged() {
  if (sqlite3_errcode(database_.get()) == SQLITE_INTERRUPT) {
    return absl::DataLossError("the database is damaged: it has a row without an end");
  }
  return absl::DataLossError(
      absl::StrCat("the database is damaged: ", sqlite3_errmsg(database_.get())));
}

absl::StatusOr<SqliteFile::Statement> SqliteFile::Prepare(const std::string& sql) {
  ticks_ = 0;
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(database_.get(), sql.c_str(), -1, &statement, nullptr) !=
      SQLITE_OK) {
    return Damaged();
  }
  return Statement(statement);
}

// Not a view, and not a table that some code makes up.
absl::StatusOr<bool> SqliteFile::IsTable(const std::string& name) {
  LULL_ASSIGN_OR_RETURN(
      Statement find,
      Prepare("SELECT sql FROM sqlite_master WHERE type = 'table' AND name = ?1"));
  sqlite3_bind_text(find.get(), 1, name.data(), static_cast<int>(name.size()),
                    SQLITE_TRANSIENT);
  const int step = sqlite3_step(find.get());
  if (step == SQLITE_DONE) return false;
  if (step != SQLITE_ROW) return Damaged();
  return absl::StartsWithIgnoreCase(Row(find.get()).Text(0), "CREATE TABLE");
}

void SqliteFile::CountText(sqlite3_stmt* row) {
  for (int i = 0; i < sqlite3_column_count(row); ++i) {
    const int type = sqlite3_column_type(row, i);
    if (type != SQLITE_TEXT && type != SQLITE_BLOB) continue;
    text_bytes_ += static_cast<uint64_t>(sqlite3_column_bytes(row, i));
  }
}

absl::Status SqliteFile::Each(const std::string& table,
                              const std::vector<std::string>& columns, Visit visit) {
  LULL_ASSIGN_OR_RETURN(bool is_table, IsTable(table));
  if (!is_table) return absl::OkStatus();
  // Columns that are computed are not among them.
  LULL_ASSIGN_OR_RETURN(Statement info,
                        Prepare(absl::StrCat("PRAGMA table_info(", table, ")")));
  std::set<std::string> there;
  while (sqlite3_step(info.get()) == SQLITE_ROW) {
    there.insert(Row(info.get()).Text(1));
  }
  std::vector<std::string> wanted;
  for (const std::string& column : columns) {
    wanted.push_back(there.contains(column) ? absl::StrCat("\"", column, "\"")
                                            : "NULL");
  }
  LULL_ASSIGN_OR_RETURN(
      Statement rows,
      Prepare(absl::StrCat("SELECT ", absl::StrJoin(wanted, ","), " FROM ", table)));
  int step;
  while ((step = sqlite3_step(rows.get())) == SQLITE_ROW) {
    ticks_ = 0;
    CountText(rows.get());
    if (text_bytes_ > kMostText) {
      return absl::ResourceExhaustedError(
          absl::StrCat("more than ", kMostText >> 30, " GiB of text"));
    }
    LULL_RETURN_IF_ERROR(visit(Row(rows.get())));
  }
  return step == SQLITE_DONE ? absl::OkStatus() : Damaged();
}

absl::StatusOr<bool> SqliteFile::HasKey(const std::string& table) {
  LULL_ASSIGN_OR_RETURN(bool is_table, IsTable(table));
  if (!is_table) return false;
  LULL_ASSIGN_OR_RETURN(Statement info,
                        Prepare(absl::StrCat("PRAGMA table_info(", table, ")")));
  size_t keys = 0;
  bool by_id = false;
  while (sqlite3_step(info.get()) == SQLITE_ROW) {
    const Row row(info.get());
    if (row.Number(5) == 0) continue;
    ++keys;
    by_id = absl::EqualsIgnoreCase(row.Text(1), "id") &&
            absl::EqualsIgnoreCase(row.Text(2), "INTEGER");
  }
  return by_id && keys == 1;
}

absl::StatusOr<std::string> SqliteFile::TextById(const std::string& table,
                                                 const std::string& column,
                                                 int64_t id) {
  if (by_id_ == nullptr) {
    LULL_ASSIGN_OR_RETURN(by_id_, Prepare(absl::StrCat("SELECT \"", column, "\" FROM ",
                                                       table, " WHERE id=?1")));
  }
  ticks_ = 0;
  sqlite3_reset(by_id_.get());
  sqlite3_bind_int64(by_id_.get(), 1, id);
  const int step = sqlite3_step(by_id_.get());
  if (step == SQLITE_ROW) return Row(by_id_.get()).Text(0);
  if (step != SQLITE_DONE) return Damaged();
  return std::string();
}

}  // namespace lull::imports
