#include "daemon/storage/catalogue.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "daemon/base/status.h"
#include "daemon/storage/columns.h"
#include "daemon/storage/tables.h"

namespace lull::storage {
namespace {

constexpr uint64_t kTidyPeriod = 1000;  // steps

// A statement about the table of R, `$table`, `$owner` and `$columns` in it filled in.
// One string for each R and purpose, as Database wants it; never destroyed, and held by
// a reference that lasts as long.
template <typename R>
const std::string& Text(std::string_view text) {
  auto* filled = new std::string(text);
  for (const auto& [name, value] :
       {std::pair<std::string_view, std::string_view>{"$table", Table<R>::kName},
        {"$owner", Table<R>::kOwner},
        {"$columns", Table<R>::kColumns}}) {
    size_t at = filled->find(name);
    for (; at != std::string::npos; at = filled->find(name)) {
      filled->replace(at, name.size(), value);
    }
  }
  return *filled;
}

template <typename R, typename... Args>
absl::StatusOr<std::vector<R>> Read(Database& db, const char* sql,
                                    const Args&... args) {
  std::vector<R> rows;
  bool sound = true;
  LULL_RETURN_IF_ERROR(db.Query(
      sql,
      [&](const Row& row) {
        sound &= FromColumns(row, Table<R>::Fields(rows.emplace_back()));
      },
      args...));
  if (sound) return rows;
  return CorruptDatabase(db.path(), absl::StrCat("a row of ", Table<R>::kName));
}

// What is left of a job's row when its messages cannot be read.
JobRow Remains(const Row& row, int uuid) {
  JobRow job;
  job.id = row.Int(0);
  job.info.set_id(std::string(row.Text(uuid)));
  job.info.set_start_realtime_ns(row.Uint(uuid + 1));
  job.ended = row.Int(2) != 0;
  job.last_event_ns = row.Uint(4);
  job.touched_ns = row.Uint(5);
  job.batches_set_aside = row.Uint(6);
  if (!FromColumn(row, 7, &job.marks)) {
    // It may have been pinned, and what is deleted does not come back.
    job.marks.Clear();
    job.marks.set_pinned(true);
  }
  return job;
}

// `condition`: what follows WHERE.
const std::string& JobQuery(std::string_view condition) {
  return Text<JobRow>(
      std::string(
          "SELECT $columns, uuid, start_realtime_ns FROM jobs WHERE deleting=0 ")
          .append(condition));
}

template <typename... Args>
absl::StatusOr<std::vector<JobRow>> ReadJobs(Database& db, const std::string& sql,
                                             std::vector<JobRow>* damaged,
                                             const Args&... args) {
  constexpr int kFields =
      std::tuple_size_v<decltype(Table<JobRow>::Fields(std::declval<JobRow&>()))>;
  std::vector<JobRow> jobs;
  LULL_RETURN_IF_ERROR(db.Query(
      sql.c_str(),
      [&](const Row& row) {
        if (FromColumns(row, Table<JobRow>::Fields(jobs.emplace_back()))) return;
        jobs.pop_back();
        if (damaged != nullptr) damaged->push_back(Remains(row, kFields));
      },
      args...));
  return jobs;
}

}  // namespace

absl::StatusOr<std::vector<JobRow>> Catalogue::Jobs(
    uint32_t limit, std::vector<JobRow>* damaged) const {
  static const std::string& sql =
      JobQuery("ORDER BY start_realtime_ns DESC, id DESC LIMIT ?");
  return ReadJobs(db_, sql, damaged, limit == 0 ? int64_t{-1} : int64_t{limit});
}

absl::StatusOr<std::vector<JobRow>> Catalogue::JobsWith(
    const std::string& text, std::vector<JobRow>* damaged) const {
  // Texts lie in a message as they are. This is a hint that saves parsing the others.
  static const std::string& sql = JobQuery(
      "AND (instr(job_info, CAST(?1 AS BLOB)) > 0 OR instr(uuid, ?1) = 1) "
      "ORDER BY start_realtime_ns DESC, id DESC");
  return ReadJobs(db_, sql, damaged, text);
}

absl::StatusOr<std::vector<JobRow>> Catalogue::LatestJobs(
    std::vector<JobRow>* damaged) const {
  static const std::string& sql = JobQuery(
      "AND MAX(start_realtime_ns, touched_ns) >= "
      "(SELECT MAX(start_realtime_ns) FROM jobs WHERE deleting=0) "
      "ORDER BY start_realtime_ns DESC, id DESC");
  return ReadJobs(db_, sql, damaged);
}

absl::StatusOr<std::vector<JobRow>> Catalogue::FindJob(const std::string& uuid) const {
  static const std::string& sql =
      Text<JobRow>("SELECT $columns FROM jobs WHERE uuid=? AND deleting=0");
  return Read<JobRow>(db_, sql.c_str(), uuid);
}

absl::StatusOr<std::vector<JobRow>> Catalogue::JobsOfRun(const std::string& run) const {
  // Only what says so may use the index.
  static const std::string& sql =
      JobQuery("AND run=? AND run<>'' ORDER BY start_realtime_ns, uuid");
  return ReadJobs(db_, sql, nullptr, run);
}

absl::StatusOr<std::vector<ClockReadingRow>> Catalogue::ClockReadings(
    int64_t job, uint64_t most) const {
  static const std::string& sql = Text<ClockReadingRow>(
      "SELECT $columns FROM $table WHERE job=? ORDER BY second DESC LIMIT ?");
  LULL_ASSIGN_OR_RETURN(auto rows, Read<ClockReadingRow>(db_, sql.c_str(), job, most));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::StatusOr<bool> Catalogue::IsBeingDeleted(const std::string& uuid) const {
  bool deleting = false;
  LULL_RETURN_IF_ERROR(db_.Query(
      "SELECT deleting FROM jobs WHERE uuid=?",
      [&](const Row& r) { deleting = r.Int(0) != 0; }, uuid));
  return deleting;
}

absl::StatusOr<ClockRow> Catalogue::Clock() const {
  ClockRow row;
  LULL_RETURN_IF_ERROR(
      db_.Query("SELECT now_ns, realtime_ns, boottime_ns, boot_id FROM clock",
                [&row](const Row& r) {
                  row = {r.Uint(0), r.Uint(1), r.Uint(2), r.Text(3)};
                }));
  return row;
}

template <typename R>
absl::StatusOr<std::vector<R>> Catalogue::All(int64_t owner) const {
  static const std::string& sql =
      Text<R>("SELECT $columns FROM $table WHERE $owner=? ORDER BY 1");
  return Read<R>(db_, sql.c_str(), owner);
}

template <typename R>
absl::StatusOr<R> Catalogue::Find(int64_t owner, uint32_t id) const {
  static const std::string& sql =
      Text<R>("SELECT $columns FROM $table WHERE $owner=? AND id=?");
  LULL_ASSIGN_OR_RETURN(std::vector<R> rows, Read<R>(db_, sql.c_str(), owner, id));
  return rows.empty() ? R() : std::move(rows.front());
}

absl::StatusOr<std::vector<StepRow>> Catalogue::Steps(int64_t process,
                                                      uint64_t begin_ns,
                                                      uint64_t end_ns,
                                                      uint32_t limit) const {
  static const std::string& sql = Text<StepRow>(
      "SELECT $columns FROM steps WHERE process=? AND end_ns>? AND start_ns<? "
      "ORDER BY number DESC LIMIT ?");
  LULL_ASSIGN_OR_RETURN(
      auto rows,
      Read<StepRow>(db_, sql.c_str(), process, Clamp(begin_ns), Clamp(end_ns),
                    limit == 0 ? int64_t{-1} : int64_t{limit}));
  std::reverse(rows.begin(), rows.end());
  return rows;
}

absl::StatusOr<std::vector<StepRow>> Catalogue::FirstSteps(int64_t process,
                                                           uint64_t limit) const {
  static const std::string& sql = Text<StepRow>(
      "SELECT $columns FROM steps WHERE process=? ORDER BY number LIMIT ?");
  return Read<StepRow>(db_, sql.c_str(), process, limit);
}

absl::StatusOr<std::vector<aggregate::Frame>> Catalogue::StackFrames(
    int64_t job, uint32_t stack) const {
  std::vector<aggregate::Frame> frames;
  LULL_ASSIGN_OR_RETURN(StackRow row, Find<StackRow>(job, stack));
  for (uint32_t id : row.frames) {
    LULL_ASSIGN_OR_RETURN(FrameRow frame, Find<FrameRow>(job, id));
    if (frame.id != 0) frames.push_back(std::move(frame.frame));
  }
  return frames;
}

absl::Status Catalogue::PutJob(JobRow& row) {
  return db_.Query(
      "INSERT INTO jobs(uuid, start_realtime_ns, job_info, ended, job_end,"
      "last_event_ns, touched_ns, set_aside, marks, run) "
      "VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10) "
      "ON CONFLICT(uuid) DO UPDATE SET start_realtime_ns=?2, job_info=?3, ended=?4,"
      "job_end=?5, last_event_ns=?6, touched_ns=?7, set_aside=?8, run=?10 RETURNING id",
      [&row](const Row& r) { row.id = r.Int(0); }, row.info.id(),
      row.info.start_realtime_ns(), ToColumn(row.info), row.ended, ToColumn(row.end),
      row.last_event_ns, row.touched_ns, row.batches_set_aside, ToColumn(row.marks),
      row.run);
}

absl::Status Catalogue::PutMarks(int64_t job, const lull::v1::JobMarks& marks) {
  return db_.Execute("UPDATE jobs SET marks=? WHERE id=?", ToColumn(marks), job);
}

absl::Status Catalogue::PutProcess(ProcessRow& row) {
  return db_.Query(
      "INSERT INTO processes(job, key, process_info, end_ns, counters, judged_ns,"
      "late_operations) VALUES(?1,?2,?3,?4,?5,?6,?7) "
      "ON CONFLICT(job, key) DO UPDATE SET process_info=?3, end_ns=?4, counters=?5,"
      "judged_ns=?6, late_operations=?7 RETURNING id",
      [&row](const Row& r) { row.id = r.Int(0); }, row.job, row.info.key(),
      ToColumn(row.info), row.end_ns, ToColumn(row.counters), row.judged_ns,
      row.late_operations);
}

absl::Status Catalogue::PutClock(const ClockRow& row) {
  return db_.Execute("REPLACE INTO clock VALUES(1,?,?,?,?)", row.now_ns,
                     row.realtime_ns, row.boottime_ns, row.boot_id);
}

template <typename R>
absl::Status Catalogue::Put(int64_t owner, const R& row) {
  const auto fields = Table<R>::Fields(row);
  static const std::string& sql = Text<R>(absl::StrCat(
      "REPLACE INTO $table($owner, $columns) VALUES(?",
      absl::StrJoin(std::vector<const char*>(std::tuple_size_v<decltype(fields)>, ",?"),
                    ""),
      ")"));
  return std::apply(
      [&](const auto&... field) {
        return db_.Execute(sql.c_str(), owner, ToColumn(field)...);
      },
      fields);
}

absl::Status Catalogue::PutStep(int64_t process, const StepRow& row) {
  LULL_RETURN_IF_ERROR(Put(process, row));
  if (row.number < kMostSteps || row.number % kTidyPeriod != 0) return absl::OkStatus();
  return db_.Execute("DELETE FROM steps WHERE process=? AND number<? AND number>?",
                     process, row.number - kMostSteps, kFirstSteps);
}

absl::Status Catalogue::ThinStepMemory(int64_t process, uint64_t stride) {
  return db_.Execute("DELETE FROM step_memory WHERE process=? AND ordinal % ? <> 0",
                     process, stride);
}

absl::Status Catalogue::DeleteLiveBlock(int64_t process,
                                        const aggregate::BlockKey& key) {
  return db_.Execute(
      "DELETE FROM live_blocks WHERE process=? AND allocator=? AND address=?", process,
      key.allocator, key.address);
}

absl::Status Catalogue::MarkForDeletion(int64_t job) {
  return db_.Execute("UPDATE jobs SET deleting=1 WHERE id=?", job);
}

absl::StatusOr<int64_t> Catalogue::JobToDelete() const {
  return db_.Value("SELECT id FROM jobs WHERE deleting=1 LIMIT 1");
}

absl::StatusOr<int64_t> Catalogue::AnyProcess(int64_t job) const {
  return db_.Value("SELECT id FROM processes WHERE job=? LIMIT 1", job);
}

template <typename R>
absl::Status Catalogue::DeleteAll(int64_t owner) {
  static const std::string& sql = Text<R>("DELETE FROM $table WHERE $owner=?");
  return db_.Execute(sql.c_str(), owner);
}

#define LULL_DELETE(R) LULL_RETURN_IF_ERROR(DeleteAll<R>(owner));

absl::Status Catalogue::DeleteJob(int64_t owner) {
  LULL_ROWS_OF_JOBS(LULL_DELETE)
  return db_.Execute("DELETE FROM jobs WHERE id=?", owner);
}

absl::Status Catalogue::DeleteProcess(int64_t owner) {
  LULL_ROWS_OF_PROCESSES(LULL_DELETE)
  return db_.Execute("DELETE FROM processes WHERE id=?", owner);
}

#define LULL_INSTANTIATE(R)                                                 \
  template absl::StatusOr<std::vector<R>> Catalogue::All<R>(int64_t) const; \
  template absl::Status Catalogue::Put<R>(int64_t, const R&);               \
  template absl::Status Catalogue::DeleteAll<R>(int64_t);
LULL_ROWS_OF_JOBS(LULL_INSTANTIATE)
LULL_ROWS_OF_PROCESSES(LULL_INSTANTIATE)
template absl::StatusOr<std::vector<ProcessRow>> Catalogue::All(int64_t) const;
template absl::StatusOr<SiteRow> Catalogue::Find(int64_t, uint32_t) const;

}  // namespace lull::storage
