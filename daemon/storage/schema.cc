#include "daemon/storage/schema.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <iterator>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"
#include "events.pb.h"

namespace lull::storage {
namespace {

constexpr std::string_view kMagic("SQLite format 3\0", 16);

// `data` comes last in its tables, so that what stands before it is read without the
// pages that a large blob spills into.
constexpr char kTables[] = R"sql(
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY AUTOINCREMENT, uuid TEXT NOT NULL UNIQUE, name TEXT, command TEXT, host TEXT,
  user TEXT, lull_version TEXT, start_ns INT, start_realtime_ns INT, budget REAL,
  ended INT, exit_status_known INT, exit_status INT, end_ns INT, relay_cpu_ns INT,
  last_event_ns INT, touched_ns INT, gpu_mode INT, gpu_schedule TEXT,
  deleting INT NOT NULL DEFAULT 0, dormant INT NOT NULL DEFAULT 0,
  attached INT NOT NULL DEFAULT 0, unrecorded INT NOT NULL DEFAULT 0, cut_off INT NOT NULL DEFAULT 0,
  set_aside INT NOT NULL DEFAULT 0, unreachable_ns INT NOT NULL DEFAULT 0,
  no_host_samples INT NOT NULL DEFAULT 0);
CREATE TABLE clock(id INTEGER PRIMARY KEY, now_ns INT, realtime_ns INT,
  boottime_ns INT, boot_id TEXT);
CREATE TABLE stretches(job INT, number INT, start_ns INT, end_ns INT,
  PRIMARY KEY(job, number)) WITHOUT ROWID;
CREATE TABLE processes(
  id INTEGER PRIMARY KEY, job INT NOT NULL, key INT NOT NULL, pid INT, parent_pid INT,
  start_ns INT, end_ns INT, command TEXT, executable TEXT, python_version TEXT,
  rank INT, local_rank INT, counters BLOB, judged_ns INT, late_operations INT,
  worker_of INT NOT NULL DEFAULT 0,
  UNIQUE(job, key));
CREATE TABLE rings(
  process INT, ring INT, end_position INT, stored INT, skipped INT, committed INT,
  lost_full INT, lost_relay INT, self_ns INT, short_waits INT, short_waits_ns INT,
  thinned_launches INT,
  PRIMARY KEY(process, ring)) WITHOUT ROWID;
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
CREATE TABLE gpu_devices(process INT, device INT, name TEXT, multiprocessors INT,
  max_threads INT, max_blocks INT, max_registers INT, max_shared INT, warp_size INT,
  compute_capability INT, total_bytes INT, PRIMARY KEY(process, device)) WITHOUT ROWID;
CREATE TABLE tracing(process INT, start_ns INT, state INT, reason INT,
  PRIMARY KEY(process, start_ns)) WITHOUT ROWID;
CREATE TABLE non_finite(process INTEGER PRIMARY KEY, time_ns INT, value INT,
  series INT, step_known INT, step INT);
CREATE TABLE steps(process INT, number INT, source INT, start_ns INT, end_ns INT,
  traced INT, kernel_ns INT, memcpy_ns INT, memset_ns INT, communication_ns INT,
  runtime_ns INT, data_ns INT, host_ns INT,
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

// Schema 7 had a column for each of a process's counters.
absl::Status CountersToProtos(Database& db) {
  absl::flat_hash_map<int64_t, std::string> protos;
  LULL_RETURN_IF_ERROR(
      db.Query("SELECT id, lost_no_ring, stacks_rejected, reentered, gpu_calls,"
               "torch_allocations, native_stacks, gc_hook, thinning, corrupt, as_of_ns,"
               "cupti_state, cupti_version, cupti_result, step_hook, cupti_dropped,"
               "gpu_records_lost, gpu_records_bad, gpu_self_ns FROM processes",
               [&protos](const Row& r) {
                 lull::v1::ProcessCounters counters;
                 counters.set_lost_no_ring(r.Uint(1));
                 counters.set_stacks_rejected(r.Uint(2));
                 counters.set_reentered(r.Uint(3));
                 counters.set_gpu_calls(r.Uint(4));
                 counters.set_torch_allocations(r.Uint(5));
                 counters.set_native_stacks(r.Enum<lull::v1::NativeStackState>(6));
                 counters.set_gc_hook(r.Enum<lull::v1::GcHookState>(7));
                 counters.set_thinning(r.Uint32(8));
                 counters.set_corrupt(r.Int(9) != 0);
                 counters.set_as_of_ns(r.Uint(10));
                 counters.set_cupti_state(r.Enum<lull::v1::CuptiState>(11));
                 counters.set_cupti_version(r.Uint32(12));
                 counters.set_cupti_result(r.Uint32(13));
                 counters.set_step_hook(r.Enum<lull::v1::StepHookState>(14));
                 counters.set_cupti_dropped(r.Uint(15));
                 counters.set_gpu_records_lost(r.Uint(16));
                 counters.set_gpu_records_bad(r.Uint(17));
                 counters.set_gpu_self_ns(r.Uint(18));
                 protos[r.Int(0)] = counters.SerializeAsString();
               }));
  for (const auto& [process, counters] : protos) {
    LULL_RETURN_IF_ERROR(db.Execute("UPDATE processes SET counters=? WHERE id=?",
                                    Blob{counters}, process));
  }
  for (const char* column :
       {"lost_no_ring", "stacks_rejected", "reentered", "gpu_calls",
        "torch_allocations", "native_stacks", "gc_hook", "thinning", "corrupt",
        "as_of_ns", "cupti_state", "cupti_version", "cupti_result", "step_hook",
        "cupti_dropped", "gpu_records_lost", "gpu_records_bad", "gpu_self_ns"}) {
    LULL_RETURN_IF_ERROR(
        db.Script(absl::StrCat("ALTER TABLE processes DROP COLUMN ", column).c_str()));
  }
  return absl::OkStatus();
}

// What leads from one schema to the next, the oldest first.
struct Step {
  const char* script;
  absl::Status (*then)(Database&) = nullptr;  // what SQL cannot say
};
constexpr int kOldestSchema = 5;
constexpr Step kSteps[] = {
    // 5: there were no jobs that sleep.
    {R"sql(
ALTER TABLE jobs ADD COLUMN dormant INT NOT NULL DEFAULT 0;
CREATE TABLE stretches(job INT, number INT, start_ns INT, end_ns INT,
  PRIMARY KEY(job, number)) WITHOUT ROWID;
)sql"},
    // 6: an attached job was like any other. No blob had kForgotten.
    {"ALTER TABLE jobs ADD COLUMN attached INT NOT NULL DEFAULT 0;"},
    // 7: counters were columns; no job said what it could not record.
    {R"sql(
ALTER TABLE processes ADD COLUMN counters BLOB;
ALTER TABLE jobs ADD COLUMN unrecorded INT NOT NULL DEFAULT 0;
)sql",
     CountersToProtos},
    // 8: ages were told by CLOCK_REALTIME, and nothing was said of how a job ended.
    {R"sql(
ALTER TABLE jobs RENAME COLUMN touched_realtime_ns TO touched_ns;
ALTER TABLE jobs ADD COLUMN cut_off INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN set_aside INT NOT NULL DEFAULT 0;
ALTER TABLE jobs ADD COLUMN unreachable_ns INT NOT NULL DEFAULT 0;
CREATE TABLE clock(id INTEGER PRIMARY KEY, now_ns INT, realtime_ns INT,
  boottime_ns INT, boot_id TEXT);
)sql"},
    // 9: no thread was sampled.
    {R"sql(
ALTER TABLE jobs ADD COLUMN no_host_samples INT NOT NULL DEFAULT 0;
ALTER TABLE processes ADD COLUMN worker_of INT NOT NULL DEFAULT 0;
)sql"},
    // 10: backward work had no sites of its own.
    {R"sql(
ALTER TABLE sites ADD COLUMN backward_of INT NOT NULL DEFAULT 0;
ALTER TABLE sites ADD COLUMN forward INT NOT NULL DEFAULT 0;
)sql"},
};
static_assert(kOldestSchema + std::size(kSteps) == kSchemaVersion);

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

absl::Status RunSteps(Database& db, int64_t version) {
  for (; version < kSchemaVersion; ++version) {
    const Step& step = kSteps[version - kOldestSchema];
    LULL_RETURN_IF_ERROR(db.Script(step.script));
    if (step.then != nullptr) LULL_RETURN_IF_ERROR(step.then(db));
  }
  return db.Script(
      absl::StrCat("PRAGMA user_version=", kSchemaVersion, ";COMMIT").c_str());
}

// All or nothing, also where it is killed halfway.
absl::Status Convert(Database& db, int64_t version) {
  LULL_RETURN_IF_ERROR(db.Script("BEGIN IMMEDIATE"));
  absl::Status status = RunSteps(db, version);
  if (!status.ok()) db.Script("ROLLBACK").IgnoreError();
  return status;
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
  auto db = Database::Open(path, SQLITE_OPEN_READONLY);
  if (!db.ok()) return db.status();
  LULL_RETURN_IF_ERROR((*db)->Script("PRAGMA cache_size=-16384; PRAGMA query_only=1;"));
  return db;
}

}  // namespace lull::storage
