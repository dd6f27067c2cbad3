#include "daemon/storage/database.h"

#include "absl/strings/str_cat.h"
#include "daemon/base/text.h"

namespace lull::storage {
namespace {

constexpr int kBusyTimeoutMs = 5000;

// As files and file systems say that they take no more.
bool IsWriteError(int rc) {
  return rc == SQLITE_IOERR_WRITE || rc == SQLITE_IOERR_FSYNC ||
         rc == SQLITE_IOERR_TRUNCATE || rc == SQLITE_IOERR_SHMSIZE;
}

absl::StatusCode CodeOf(int rc) {
  if (IsWriteError(rc)) return absl::StatusCode::kResourceExhausted;
  switch (rc & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_CANTOPEN:
      return absl::StatusCode::kPermissionDenied;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status MakeError(sqlite3* db, const std::string& path) {
  absl::StatusCode code = CodeOf(sqlite3_extended_errcode(db));
  if (code == absl::StatusCode::kDataLoss) {
    return CorruptDatabase(path, sqlite3_errmsg(db));  // may quote what is damaged
  }
  return absl::Status(code, absl::StrCat("database ", path, ": ", sqlite3_errmsg(db)));
}

}  // namespace

absl::Status CorruptDatabase(const std::string& path, const std::string& what) {
  return absl::DataLossError(absl::StrCat(
      "the database ", path, " is truncated or corrupt (", CleanText(what),
      "); restore it from a copy, move it away to start with an empty one, or choose "
      "another file with --database"));
}

std::string_view Row::Bytes(int column) const {
  const void* data = sqlite3_column_blob(statement_, column);
  int size = sqlite3_column_bytes(statement_, column);
  if (data == nullptr) return {};
  return {static_cast<const char*>(data), static_cast<size_t>(size)};
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const std::string& path,
                                                         int flags) {
  sqlite3* db = nullptr;
  int rc = sqlite3_open_v2(path.c_str(), &db, flags | SQLITE_OPEN_NOMUTEX, nullptr);
  if (rc != SQLITE_OK) {
    absl::Status status = db != nullptr ? MakeError(db, path)
                                        : absl::ResourceExhaustedError("out of memory");
    sqlite3_close(db);
    return status;
  }
  sqlite3_busy_timeout(db, kBusyTimeoutMs);
  return std::unique_ptr<Database>(new Database(db, path));
}

Database::~Database() {
  for (auto& [sql, statement] : statements_) sqlite3_finalize(statement);
  sqlite3_close(db_);
}

sqlite3_stmt* Database::Prepare(const char* sql) {
  auto [it, fresh] = statements_.try_emplace(sql, nullptr);
  if (fresh && sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT, &it->second,
                                  nullptr) != SQLITE_OK) {
    statements_.erase(it);
    return nullptr;
  }
  return it->second;
}

absl::Status Database::Error() const { return MakeError(db_, path_); }

absl::Status Database::Script(const char* sql) {
  if (sqlite3_exec(db_, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return Error();
  return absl::OkStatus();
}

absl::Status Database::AddFunction(const char* name,
                                   void (*function)(sqlite3_context*, int,
                                                    sqlite3_value**)) {
  int rc = sqlite3_create_function(
      db_, name, -1, SQLITE_UTF8 | SQLITE_DETERMINISTIC | SQLITE_DIRECTONLY, nullptr,
      function, nullptr, nullptr);
  return rc == SQLITE_OK ? absl::OkStatus() : Error();
}

}  // namespace lull::storage
