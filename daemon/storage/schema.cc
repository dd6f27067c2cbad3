#include "daemon/storage/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull::storage {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

// `data` comes last in its tables, so that what stands before it is read without the
// pages that a large blob spills into.
constexpr char kTables[] = R"sql(
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE,
  start_realtime_ns INT, ended INT, last_event_ns INT, touched_ns INT,
  deleting INT NOT NULL DEFAULT 0, set_aside INT NOT NULL DEFAULT 0,
  job_info BLOB, job_end BLOB, marks BLOB, run TEXT NOT NULL DEFAULT '');
CREATE INDEX jobs_by_run ON jobs(run) WHERE run<>'';
CREATE TABLE clock_readings(job INT, second INT, reading BLOB,
  PRIMARY KEY(job, second)) WITHOUT ROWID;
CREATE TABLE clock(id INTEGER PRIMARY KEY, now_ns INT, realtime_ns INT,
  boottime_ns INT, boot_id TEXT);
CREATE TABLE stretches(job INT, number INT, start_ns INT, end_ns INT,
  PRIMARY KEY(job, number)) WITHOUT ROWID;
CREATE TABLE processes(
  id INTEGER PRIMARY KEY, job INT NOT NULL, key INT NOT NULL, end_ns INT,
  judged_ns INT, late_operations INT, counters BLOB, process_info BLOB,
  UNIQUE(job, key));
CREATE TABLE rings(process INT, ring INT, end_position INT, stored INT, skipped INT,
  counters BLOB, PRIMARY KEY(process, ring)) WITHOUT ROWID;
CREATE TABLE apis(job INT, id INT, name TEXT, family TEXT,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE frames(job INT, id INT, function TEXT, file TEXT, line INT, module TEXT,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE stacks(job INT, id INT, native INT, truncated INT, frames BLOB,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE refs(process INT, kind INT, ref INT, id INT,
  PRIMARY KEY(process, kind, ref)) WITHOUT ROWID;
CREATE TABLE sites(job INT, id INT, file TEXT, line INT, function TEXT,
  backward_of INT NOT NULL DEFAULT 0, forward INT NOT NULL DEFAULT 0,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE sources(job INT, id INT, def BLOB, PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE series(process INT, id INT, type INT, variant INT, api INT,
  python_stack INT, native_stack INT, line_site INT, function_site INT,
  line_group INT, function_group INT, total_group INT, shape INT, gpu_stream INT,
  before_line INT,
  before_function INT, after_line INT, after_function INT,
  PRIMARY KEY(process, id)) WITHOUT ROWID;
CREATE TABLE kernel_names(job INT, id INT, name TEXT,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE kernels(job INT, id INT, name INT, grid_x INT, grid_y INT, grid_z INT,
  block_x INT, block_y INT, block_z INT, registers INT, static_shared INT,
  dynamic_shared INT, PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE gpu_streams(job INT, id INT, device INT, context INT, stream INT,
  PRIMARY KEY(job, id)) WITHOUT ROWID;
CREATE TABLE gpu_devices(process INT, device INT, def BLOB,
  PRIMARY KEY(process, device)) WITHOUT ROWID;
CREATE TABLE tracing(process INT, start_ns INT, state INT, reason INT,
  PRIMARY KEY(process, start_ns)) WITHOUT ROWID;
CREATE TABLE non_finite(process INTEGER PRIMARY KEY, time_ns INT, value INT,
  series INT, step_known INT, step INT);
CREATE TABLE steps(process INT, number INT, source INT, start_ns INT, end_ns INT,
  traced INT, kernel_ns INT, memcpy_ns INT, memset_ns INT, communication_ns INT,
  runtime_ns INT, data_ns INT, host_ns INT, rested_ns INT,
  PRIMARY KEY(process, number)) WITHOUT ROWID;
CREATE TABLE step_memory(process INT, ordinal INT, step INT, end_ns INT, live BLOB,
  PRIMARY KEY(process, ordinal)) WITHOUT ROWID;
CREATE TABLE cells(process INT, level INT, bucket INT, chunk INT, data BLOB,
  PRIMARY KEY(process, level, bucket, chunk));
CREATE TABLE blocks(
  id INTEGER PRIMARY KEY, job INT NOT NULL, process INT NOT NULL, ring INT NOT NULL,
  first_position INT NOT NULL, count INT NOT NULL, min_ns INT, max_ns INT,
  small INT, data BLOB, UNIQUE(process, ring, first_position));
CREATE INDEX blocks_by_time ON blocks(process, max_ns, min_ns);
CREATE INDEX small_blocks ON blocks(process, ring, first_position, count) WHERE small;
CREATE TABLE live_blocks(process INT, allocator INT, address INT, series INT,
  bytes INT, since_ns INT, PRIMARY KEY(process, allocator, address)) WITHOUT ROWID;
)sql";

absl::Status Foreign(const std::string& path) {
  return absl::FailedPreconditionError(
      absl::StrCat(path,
                   " is not a database of lull and is left as it is; move it away, or "
                   "choose another file with --database"));
}

absl::Status NotWritable(const std::string& path, absl::string_view why) {
  return absl::PermissionDeniedError(absl::StrCat(
      "cannot write to the database ", path, " (", why,
      "); make the file and its folder writable, or choose another file with "
      "--database"));
}

// Looks at the file itself before SQLite does, which would take a file of less than
// a page for an empty database. OK for one that does not exist.
absl::Status CheckFile(const std::string& path) {
  UniqueFd fd(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));  // a pipe waits
  if (!fd)
    return errno == ENOENT ? absl::OkStatus() : NotWritable(path, strerror(errno));
  struct stat info;
  if (fstat(fd.get(), &info) != 0 || !S_ISREG(info.st_mode)) return Foreign(path);
  if (info.st_size == 0) return absl::OkStatus();
  char magic[16];
  ssize_t size = pread(fd.get(), magic, sizeof(magic), 0);
  if (size != sizeof(magic) || std::string_view(magic, sizeof(magic)) != kMagic) {
    return Foreign(path);
  }
  return info.st_size < 512 ? CorruptDatabase(path, "the header is cut off")
                            : absl::OkStatus();
}

// What lies in the write-ahead log need not be in the file yet.
absl::Status CheckSize(Database& db) {
  LULL_ASSIGN_OR_RETURN(int64_t pages, db.Value("PRAGMA page_count"));
  LULL_ASSIGN_OR_RETURN(int64_t page_size, db.Value("PRAGMA page_size"));
  struct stat file, log;
  if (stat(db.path().c_str(), &file) != 0) return ErrnoStatus(errno, db.path());
  bool has_log =
      stat(absl::StrCat(db.path(), "-wal").c_str(), &log) == 0 && log.st_size > 0;
  if (!has_log && file.st_size < pages * page_size) {
    return CorruptDatabase(
        db.path(), absl::StrCat(file.st_size, " of ", pages * page_size, " bytes"));
  }
  return absl::OkStatus();
}

absl::Status CreateTables(Database& db) {
  // Outside of a transaction, and before the first table. 8 KiB: a block of events
  // is two to six pages.
  LULL_RETURN_IF_ERROR(
      db.Script("PRAGMA page_size=8192; PRAGMA auto_vacuum=INCREMENTAL;"
                "PRAGMA journal_mode=WAL;"));
  return db.Script(absl::StrCat("BEGIN IMMEDIATE;", kTables,
                                "PRAGMA application_id=", kApplicationId,
                                ";PRAGMA user_version=", kSchemaVersion, ";COMMIT;")
                       .c_str());
}

absl::Status PrepareSchema(Database& db) {
  LULL_ASSIGN_OR_RETURN(int64_t application, db.Value("PRAGMA application_id"));
  LULL_ASSIGN_OR_RETURN(int64_t version, db.Value("PRAGMA user_version"));
  LULL_ASSIGN_OR_RETURN(int64_t tables, db.Value("SELECT count(*) FROM sqlite_schema"));
  if (application == 0 && version == 0 && tables == 0) return CreateTables(db);
  if (application != kApplicationId) return Foreign(db.path());
  if (version < kOldestSchema || version > kSchemaVersion) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the database ", db.path(), " has schema ", version,
        ", this lulld knows schema ", kSchemaVersion,
        "; use the lulld that wrote it, or choose another file with --database"));
  }
  LULL_RETURN_IF_ERROR(CheckSize(db));
  return version == kSchemaVersion ? absl::OkStatus() : Convert(db, version);
}

// Says of SQLite's own errors what the user can do about them.
absl::Status Explain(const std::string& path, const absl::Status& status) {
  if (absl::IsPermissionDenied(status) &&
      status.message().find("--database") == absl::string_view::npos) {
    return NotWritable(path, status.message());
  }
  return status;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> OpenForWriting(const std::string& path) {
  LULL_RETURN_IF_ERROR(CheckFile(path));
  mode_t before = umask(077);  // what the job ran is nobody else's business
  auto db = Database::Open(path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  umask(before);
  if (!db.ok()) return Explain(path, db.status());
  if ((*db)->read_only()) return NotWritable(path, "it is write-protected");
  absl::Status status = PrepareSchema(**db);
  if (status.ok()) {
    status = (*db)->Script(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
        "PRAGMA wal_autocheckpoint=4000; PRAGMA cache_size=-32768;"
        "PRAGMA journal_size_limit=67108864;");
  }
  if (!status.ok()) return Explain(path, status);
  return db;
}

absl::StatusOr<std::unique_ptr<Database>> OpenForReading(const std::string& path) {
  LULL_ASSIGN_OR_RETURN(auto db, Database::Open(path, SQLITE_OPEN_READONLY));
  LULL_RETURN_IF_ERROR(db->Script("PRAGMA cache_size=-16384; PRAGMA query_only=1;"));
  return db;
}

}  // namespace lull::storage
