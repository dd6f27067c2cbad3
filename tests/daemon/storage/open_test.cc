#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "daemon/storage/store.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::storage {
namespace {

using ::testing::HasSubstr;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteAll(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

void Sql(const std::string& path, const char* sql) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, sql, nullptr, nullptr, nullptr), SQLITE_OK)
      << sqlite3_errmsg(db);
  sqlite3_close(db);
}

// A database of ours with one job in it.
void MakeDatabase(const std::string& path) {
  auto store = Store::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  StoreWriter& writer = (*store)->writer();
  ASSERT_TRUE(writer.Begin().ok());
  JobRow job;
  job.info.set_id(std::string(32, 'a'));
  job.info.set_command(std::string(20000, 'x'));
  ASSERT_TRUE(writer.catalogue().PutJob(job).ok());
  ASSERT_TRUE(writer.Commit().ok());
}

void ExpectRefused(const std::string& path, const std::string& why) {
  std::string before = ReadAll(path);
  auto store = Store::Open(path);
  ASSERT_FALSE(store.ok()) << why;
  EXPECT_THAT(store.status().message(), HasSubstr(path));
  EXPECT_THAT(store.status().message(), HasSubstr(why));
  EXPECT_THAT(store.status().message(), HasSubstr("--database"));
  EXPECT_EQ(ReadAll(path), before) << "the file was changed";
}

TEST(OpenStore, MakesANewDatabaseThatOnlyItsOwnerCanRead) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  struct stat info;
  ASSERT_EQ(stat((directory / "a.db").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST(OpenStore, TakesAnEmptyFileForANewDatabase) {
  test::TemporaryDirectory directory;
  WriteAll(directory / "a.db", "");
  EXPECT_TRUE(Store::Open(directory / "a.db").ok());
}

TEST(OpenStore, FindsWhatAnEarlierOneStored) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto reader = (*store)->NewReader();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*reader)->catalogue().Jobs(0)->size(), 1u);
}

TEST(OpenStore, RefusesAFileThatIsNoDatabase) {
  test::TemporaryDirectory directory;
  WriteAll(directory / "a.db", "these are my notes, and they are dear to me");
  ExpectRefused(directory / "a.db", "is not a database of lull");
}

TEST(OpenStore, RefusesTheDatabaseOfAnotherProgram) {
  test::TemporaryDirectory directory;
  Sql(directory / "a.db", "CREATE TABLE bookmarks(url TEXT)");
  ExpectRefused(directory / "a.db", "is not a database of lull");
}

TEST(OpenStore, RefusesWhatIsNoFile) {
  test::TemporaryDirectory directory;
  ASSERT_EQ(mkdir((directory / "a.db").c_str(), 0700), 0);
  ASSERT_EQ(mkfifo((directory / "b.db").c_str(), 0600), 0);
  for (const char* name : {"a.db", "b.db"}) {  // and waits for nobody
    auto store = Store::Open(directory / name);
    ASSERT_FALSE(store.ok()) << name;
    EXPECT_THAT(store.status().message(), HasSubstr("is not a database of lull"));
  }
}

TEST(OpenStore, RefusesATruncatedDatabase) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  std::string whole = ReadAll(directory / "a.db");
  for (size_t size : {size_t{100}, size_t{600}, size_t{8192}, whole.size() - 8192,
                      whole.size() - 1}) {
    WriteAll(directory / "a.db", whole.substr(0, size));
    ExpectRefused(directory / "a.db", "truncated");
  }
}

TEST(OpenStore, RefusesTheDatabaseOfANewerLull) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", "PRAGMA user_version=99; PRAGMA wal_checkpoint(TRUNCATE)");
  ExpectRefused(directory / "a.db", "has schema 99");
}

// Takes back what schema 17 changed, and forgets what it knows.
#define BACK_TO_SCHEMA_16 "ALTER TABLE steps DROP COLUMN rested_ns;"
// And what schema 16 did.
#define BACK_TO_SCHEMA_15             \
  BACK_TO_SCHEMA_16                   \
  "DROP INDEX jobs_by_run;"           \
  "ALTER TABLE jobs DROP COLUMN run;" \
  "DROP TABLE clock_readings;"
// And what schemas 12 to 15 did.
constexpr char kBackToSchema11[] = BACK_TO_SCHEMA_15
    "ALTER TABLE jobs DROP COLUMN marks;"
    "DROP TABLE sources;"
    "ALTER TABLE jobs DROP COLUMN job_info;"
    "ALTER TABLE jobs DROP COLUMN job_end;"
    "ALTER TABLE jobs ADD COLUMN name TEXT;"
    "ALTER TABLE jobs ADD COLUMN command TEXT;"
    "ALTER TABLE jobs ADD COLUMN host TEXT;"
    "ALTER TABLE jobs ADD COLUMN user TEXT;"
    "ALTER TABLE jobs ADD COLUMN lull_version TEXT;"
    "ALTER TABLE jobs ADD COLUMN start_ns INT;"
    "ALTER TABLE jobs ADD COLUMN budget REAL;"
    "ALTER TABLE jobs ADD COLUMN exit_status_known INT;"
    "ALTER TABLE jobs ADD COLUMN exit_status INT;"
    "ALTER TABLE jobs ADD COLUMN end_ns INT;"
    "ALTER TABLE jobs ADD COLUMN relay_cpu_ns INT;"
    "ALTER TABLE jobs ADD COLUMN gpu_mode INT;"
    "ALTER TABLE jobs ADD COLUMN gpu_schedule TEXT;"
    "ALTER TABLE jobs ADD COLUMN dormant INT NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN attached INT NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN unrecorded INT NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN cut_off INT NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN unreachable_ns INT NOT NULL DEFAULT 0;"
    "ALTER TABLE jobs ADD COLUMN no_host_samples INT NOT NULL DEFAULT 0;"
    "ALTER TABLE processes DROP COLUMN process_info;"
    "ALTER TABLE processes ADD COLUMN pid INT;"
    "ALTER TABLE processes ADD COLUMN parent_pid INT;"
    "ALTER TABLE processes ADD COLUMN start_ns INT;"
    "ALTER TABLE processes ADD COLUMN command TEXT;"
    "ALTER TABLE processes ADD COLUMN executable TEXT;"
    "ALTER TABLE processes ADD COLUMN python_version TEXT;"
    "ALTER TABLE processes ADD COLUMN rank INT;"
    "ALTER TABLE processes ADD COLUMN local_rank INT;"
    "ALTER TABLE processes ADD COLUMN worker_of INT NOT NULL DEFAULT 0;"
    "DROP TABLE rings;"
    "CREATE TABLE rings("
    "  process INT, ring INT, end_position INT, stored INT, skipped INT, committed INT,"
    "  lost_full INT, lost_relay INT, self_ns INT, short_waits INT, short_waits_ns INT,"
    "  thinned_launches INT, PRIMARY KEY(process, ring)) WITHOUT ROWID;"
    "DROP TABLE gpu_devices;"
    "CREATE TABLE gpu_devices(process INT, device INT, name TEXT, multiprocessors INT,"
    "  max_threads INT, max_blocks INT, max_registers INT, max_shared INT,"
    "  warp_size INT, compute_capability INT, total_bytes INT,"
    "  PRIMARY KEY(process, device)) WITHOUT ROWID;";
// And what schema 11 did.
constexpr char kBackToSchema10[] =
    "ALTER TABLE sites DROP COLUMN backward_of;"
    "ALTER TABLE sites DROP COLUMN forward;";
// And what schema 10 did.
constexpr char kBackToSchema9[] =
    "ALTER TABLE jobs DROP COLUMN no_host_samples;"
    "ALTER TABLE processes DROP COLUMN worker_of;";
// And what schema 9 did.
constexpr char kBackToSchema8[] =
    "DROP TABLE clock;"
    "ALTER TABLE jobs RENAME COLUMN touched_ns TO touched_realtime_ns;"
    "ALTER TABLE jobs DROP COLUMN cut_off;"
    "ALTER TABLE jobs DROP COLUMN set_aside;"
    "ALTER TABLE jobs DROP COLUMN unreachable_ns;";
// And what schema 8 did.
constexpr char kBackToSchema7[] =
    "ALTER TABLE jobs DROP COLUMN unrecorded;"
    "ALTER TABLE processes DROP COLUMN counters;"
    "ALTER TABLE processes ADD COLUMN lost_no_ring INT;"
    "ALTER TABLE processes ADD COLUMN stacks_rejected INT;"
    "ALTER TABLE processes ADD COLUMN reentered INT;"
    "ALTER TABLE processes ADD COLUMN gpu_calls INT;"
    "ALTER TABLE processes ADD COLUMN torch_allocations INT;"
    "ALTER TABLE processes ADD COLUMN native_stacks INT;"
    "ALTER TABLE processes ADD COLUMN gc_hook INT;"
    "ALTER TABLE processes ADD COLUMN thinning INT;"
    "ALTER TABLE processes ADD COLUMN corrupt INT;"
    "ALTER TABLE processes ADD COLUMN as_of_ns INT;"
    "ALTER TABLE processes ADD COLUMN cupti_state INT;"
    "ALTER TABLE processes ADD COLUMN cupti_version INT;"
    "ALTER TABLE processes ADD COLUMN cupti_result INT;"
    "ALTER TABLE processes ADD COLUMN step_hook INT;"
    "ALTER TABLE processes ADD COLUMN cupti_dropped INT;"
    "ALTER TABLE processes ADD COLUMN gpu_records_lost INT;"
    "ALTER TABLE processes ADD COLUMN gpu_records_bad INT;"
    "ALTER TABLE processes ADD COLUMN gpu_self_ns INT;";

TEST(OpenStore, ConvertsTheDatabaseOfSchema5) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db", kBackToSchema7);
  Sql(directory / "a.db",
      "DROP TABLE stretches; ALTER TABLE jobs DROP COLUMN dormant;"
      "ALTER TABLE jobs DROP COLUMN attached;"
      "INSERT INTO jobs(uuid, name, start_ns) VALUES('5', 'old', 7);"
      "PRAGMA user_version=5; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto jobs = (*store)->writer().catalogue().FindJob("5");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().info.name(), "old");
  EXPECT_FALSE(jobs->front().info.dormant());
  EXPECT_FALSE(jobs->front().info.attached());
  EXPECT_TRUE(
      (*store)->writer().catalogue().Put(jobs->front().id, StretchRow{1, 8, 9}).ok());
  auto stretches = (*store)->writer().catalogue().All<StretchRow>(jobs->front().id);
  ASSERT_TRUE(stretches.ok()) << stretches.status();
  ASSERT_EQ(stretches->size(), 1u);
  EXPECT_EQ(stretches->front().end_ns, 9u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema6) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db", kBackToSchema7);
  Sql(directory / "a.db",
      "ALTER TABLE jobs DROP COLUMN attached;"
      "INSERT INTO jobs(uuid, name, start_ns, dormant) VALUES('6', 'old', 7, 1);"
      "PRAGMA user_version=6; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto jobs = (*store)->writer().catalogue().FindJob("6");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_TRUE(jobs->front().info.dormant());
  EXPECT_FALSE(jobs->front().info.attached());
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema7) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db", kBackToSchema7);
  Sql(directory / "a.db",
      "INSERT INTO jobs(uuid, name, start_ns) VALUES('7', 'old', 7);"
      "INSERT INTO processes(job, key, pid, lost_no_ring, corrupt, as_of_ns,"
      "cupti_version, gpu_self_ns, judged_ns) SELECT id, 1, 42, 3, 1, 1234567890123, "
      "24,"
      "9, 11 FROM jobs WHERE uuid='7';"
      "PRAGMA user_version=7; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreReader& reader = (*store)->writer();
  auto jobs = reader.catalogue().FindJob("7");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  auto processes = reader.catalogue().All<ProcessRow>(jobs->front().id);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 1u);
  const ProcessRow& process = processes->front();
  EXPECT_EQ(process.info.pid(), 42u);
  EXPECT_EQ(process.judged_ns, 11u);
  EXPECT_EQ(process.counters.lost_no_ring(), 3u);
  EXPECT_TRUE(process.counters.corrupt());
  EXPECT_EQ(process.counters.as_of_ns(), 1234567890123u);
  EXPECT_EQ(process.counters.cupti_version(), 24u);
  EXPECT_EQ(process.counters.gpu_self_ns(), 9u);
  EXPECT_EQ(process.counters.stacks_rejected(), 0u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema8) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db",
      "INSERT INTO jobs(uuid, name, start_ns, touched_realtime_ns) "
      "VALUES('8', 'old', 7, 1234567890123);"
      "PRAGMA user_version=8; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreReader& reader = (*store)->writer();
  auto jobs = reader.catalogue().FindJob("8");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().touched_ns, 1234567890123u);
  EXPECT_FALSE(jobs->front().end.cut_off());
  auto clock = reader.catalogue().Clock();
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->now_ns, 0u) << "it had none";
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema9) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db",
      "INSERT INTO jobs(uuid, name, start_ns) VALUES('9', 'old', 7);"
      "INSERT INTO processes(job, key, pid) SELECT id, 1, 42 FROM jobs WHERE uuid='9';"
      "PRAGMA user_version=9; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreWriter& writer = (*store)->writer();
  auto jobs = writer.catalogue().FindJob("9");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_FALSE(jobs->front().info.no_host_samples());
  auto processes = writer.catalogue().All<ProcessRow>(jobs->front().id);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 1u);
  EXPECT_EQ(processes->front().info.worker_of(), 0u);

  jobs->front().info.set_no_host_samples(true);
  processes->front().info.set_worker_of(3);
  ASSERT_TRUE(writer.catalogue().PutJob(jobs->front()).ok());
  ASSERT_TRUE(writer.catalogue().PutProcess(processes->front()).ok());
  EXPECT_TRUE(writer.catalogue().FindJob("9")->front().info.no_host_samples());
  EXPECT_EQ(
      writer.catalogue().All<ProcessRow>(jobs->front().id)->front().info.worker_of(),
      3u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema14) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", BACK_TO_SCHEMA_15
      "ALTER TABLE jobs DROP COLUMN marks;"
      "INSERT INTO jobs(id, uuid) VALUES(90, '14');"
      "PRAGMA user_version=14; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  Catalogue& catalogue = (*store)->writer().catalogue();
  auto jobs = catalogue.FindJob("14");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->at(0).marks.ShortDebugString(), "");
  lull::v1::JobMarks marks;
  marks.add_tags("naive");
  marks.set_pinned(true);
  ASSERT_TRUE(catalogue.PutMarks(90, marks).ok());
  EXPECT_EQ(catalogue.FindJob("14")->at(0).marks.ShortDebugString(),
            "tags: \"naive\" pinned: true");
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema15) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", BACK_TO_SCHEMA_15
      "INSERT INTO jobs(id, uuid) VALUES(90, '15');"
      "PRAGMA user_version=15; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  Catalogue& catalogue = (*store)->writer().catalogue();
  auto jobs = catalogue.FindJob("15");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  EXPECT_EQ(jobs->at(0).run, "");
  EXPECT_TRUE(catalogue.JobsOfRun("")->empty());
  jobs->at(0).run = "torchrun:x";
  ASSERT_TRUE(catalogue.PutJob(jobs->at(0)).ok());
  EXPECT_EQ(catalogue.JobsOfRun("torchrun:x")->size(), 1u);
  ClockReadingRow row;
  row.second = 7;
  row.reading.set_low_ns(-5);
  ASSERT_TRUE(catalogue.Put(90, row).ok());
  auto readings = catalogue.All<ClockReadingRow>(90);
  ASSERT_TRUE(readings.ok()) << readings.status();
  EXPECT_EQ(readings->at(0).reading.low_ns(), -5);
  for (uint64_t second : {9, 8}) {
    row.second = second;
    ASSERT_TRUE(catalogue.Put(90, row).ok());
  }
  const auto newest = catalogue.ClockReadings(90, 2);
  ASSERT_TRUE(newest.ok()) << newest.status();
  ASSERT_EQ(newest->size(), 2u);
  EXPECT_EQ(newest->at(0).second, 8u);
  EXPECT_EQ(newest->at(1).second, 9u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema16) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", BACK_TO_SCHEMA_16
      "INSERT INTO steps(process, number, start_ns, end_ns) VALUES(90, 4, 10, 30);"
      "PRAGMA user_version=16; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  Catalogue& catalogue = (*store)->writer().catalogue();
  auto steps = catalogue.Steps(90, 0, 100, 0);
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 1u);
  EXPECT_EQ(steps->at(0).end_ns, 30u);
  EXPECT_EQ(steps->at(0).rested_ns, 0u);
  steps->at(0).rested_ns = 7;
  ASSERT_TRUE(catalogue.PutStep(90, steps->at(0)).ok());
  EXPECT_EQ(catalogue.Steps(90, 0, 100, 0)->at(0).rested_ns, 7u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema11) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema11);
  Sql(directory / "a.db",
      "INSERT INTO jobs(id, uuid, name, command, host, user, lull_version, start_ns,"
      "start_realtime_ns, budget, ended, exit_status_known, exit_status, end_ns,"
      "relay_cpu_ns, last_event_ns, touched_ns, gpu_mode, gpu_schedule, dormant,"
      "attached, unrecorded, cut_off, set_aside, unreachable_ns, no_host_samples) "
      "VALUES(70, '11', 'n\xc3\xbc', 'c', 'h', 'u', 'v', 9000000000000000001, 2, 2.5, "
      "1,"
      "1, -7, 3, 4, 5, 6, 2, 'wait=1', 1, 1, 8, 1, 9, 10, 1);"
      "INSERT INTO processes(id, job, key, pid, parent_pid, start_ns, end_ns, command,"
      "executable, python_version, rank, local_rank, counters, judged_ns,"
      "late_operations, worker_of) "
      "VALUES(80, 70, -2, 42, 43, 44, 45, 'c', 'e', '3.11', -1, 3, x'3007', 46, 47, 5);"
      "INSERT INTO rings VALUES(80, 65535, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);"
      "INSERT INTO gpu_devices VALUES(80, 1, 'H200', 1, 2, 3, 4, 5, 6, 7, 8);"
      "PRAGMA user_version=11; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = Store::Open(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  const Catalogue& catalogue = (*store)->writer().catalogue();
  auto jobs = catalogue.FindJob("11");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  const JobRow& job = jobs->front();
  EXPECT_EQ(job.id, 70);
  auto sources = catalogue.All<SourceRow>(70);
  ASSERT_TRUE(sources.ok()) << sources.status();
  EXPECT_TRUE(sources->empty());
  EXPECT_EQ(job.info.ShortDebugString(),
            "id: \"11\" name: \"n\\303\\274\" command: \"c\" host: \"h\" user: \"u\" "
            "start_ns: 9000000000000000001 start_realtime_ns: 2 lull_version: \"v\" "
            "overhead_budget_percent: 2.5 gpu_mode: GPU_MODE_CONTINUOUS gpu_schedule: "
            "\"wait=1\" "
            "dormant: true attached: true no_host_samples: true");
  EXPECT_TRUE(job.ended);
  EXPECT_EQ(job.end.ShortDebugString(),
            "end_ns: 3 exit_status: -7 known: true relay_cpu_ns: 4 "
            "unrecorded_processes: 8 cut_off: true unreachable_ns: 10");
  EXPECT_EQ(job.last_event_ns, 5u);
  EXPECT_EQ(job.touched_ns, 6u);
  EXPECT_EQ(job.batches_set_aside, 9u);
  auto processes = catalogue.All<ProcessRow>(70);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 1u);
  const ProcessRow& process = processes->front();
  EXPECT_EQ(process.id, 80);
  EXPECT_EQ(process.info.ShortDebugString(),
            "key: 18446744073709551614 pid: 42 parent_pid: 43 start_ns: 44 "
            "command: \"c\" executable: \"e\" python_version: \"3.11\" rank: -1 "
            "local_rank: 3 worker_of: 5");
  EXPECT_EQ(process.end_ns, 45u);
  EXPECT_EQ(process.counters.gpu_calls(), 7u);
  EXPECT_EQ(process.judged_ns, 46u);
  EXPECT_EQ(process.late_operations, 47u);
  auto rings = catalogue.All<RingRow>(80);
  ASSERT_TRUE(rings.ok()) << rings.status();
  ASSERT_EQ(rings->size(), 1u);
  EXPECT_EQ(rings->front().ring, 65535u);
  EXPECT_EQ(rings->front().end_position, 1u);
  EXPECT_EQ(rings->front().stored, 2u);
  EXPECT_EQ(rings->front().skipped, 3u);
  EXPECT_EQ(rings->front().counters.ShortDebugString(),
            "ring: 65535 committed: 4 lost_full: 5 lost_relay: 6 self_ns: 7 "
            "short_waits: 8 short_waits_ns: 9 thinned_launches: 10");
  auto devices = catalogue.All<GpuDeviceRow>(80);
  ASSERT_TRUE(devices.ok()) << devices.status();
  ASSERT_EQ(devices->size(), 1u);
  EXPECT_EQ(devices->front().device, DeviceId{1});
  EXPECT_EQ(devices->front().def.ShortDebugString(),
            "device: 1 name: \"H200\" multiprocessors: 1 "
            "max_threads_per_multiprocessor: 2 max_blocks_per_multiprocessor: 3 "
            "max_registers_per_multiprocessor: 4 "
            "max_shared_bytes_per_multiprocessor: 5 warp_size: 6 "
            "compute_capability: 7 total_bytes: 8");
}

// Bytes that no lull has written are an error, not a row of zeros.
TEST(OpenStore, SaysWhichRowIsDamaged) {
  for (const auto& [sql, what] :
       {std::pair<const char*, const char*>{"UPDATE processes SET process_info=x'ff'",
                                            "processes"},
        {"UPDATE processes SET counters=x'ff'", "processes"},
        {"UPDATE rings SET counters=x'08'", "rings"},
        {"UPDATE stacks SET frames=x'ff'", "stacks"}}) {
    test::TemporaryDirectory directory;
    MakeDatabase(directory / "a.db");
    Sql(directory / "a.db",
        "INSERT INTO processes(id, job, key) VALUES(5, 1, 1);"
        "INSERT INTO rings(process, ring) VALUES(5, 0);"
        "INSERT INTO stacks(job, id) VALUES(1, 1);");
    Sql(directory / "a.db", sql);
    auto store = Store::Open(directory / "a.db");
    ASSERT_TRUE(store.ok()) << store.status();
    const Catalogue& catalogue = (*store)->writer().catalogue();
    absl::Status status;
    status.Update(catalogue.All<ProcessRow>(1).status());
    status.Update(catalogue.All<RingRow>(5).status());
    status.Update(catalogue.All<StackRow>(1).status());
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << sql;
    EXPECT_THAT(status.message(), HasSubstr(std::string("a row of ") + what)) << sql;
    EXPECT_THAT(status.message(), HasSubstr("--database")) << sql;
  }
}

// One damaged job must not hide all the others.
TEST(OpenStore, TellsDamagedJobsFromTheOthers) {
  for (const char* sql : {"UPDATE jobs SET job_info=x'ff' WHERE uuid LIKE 'b%'",
                          "UPDATE jobs SET job_end=x'0aff' WHERE uuid LIKE 'b%'"}) {
    test::TemporaryDirectory directory;
    {
      auto store = *Store::Open(directory / "a.db");
      ASSERT_TRUE(store->writer().Begin().ok());
      for (char digit : {'a', 'b', 'c'}) {
        JobRow job;
        job.info.set_id(std::string(32, digit));
        job.info.set_start_realtime_ns(static_cast<uint64_t>(digit));
        job.ended = true;
        job.touched_ns = 7;
        ASSERT_TRUE(store->writer().catalogue().PutJob(job).ok());
      }
      ASSERT_TRUE(store->writer().Commit().ok());
    }
    Sql(directory / "a.db", sql);
    auto store = *Store::Open(directory / "a.db");
    const Catalogue& catalogue = store->writer().catalogue();
    std::vector<JobRow> damaged;
    auto jobs = catalogue.Jobs(0, &damaged);
    ASSERT_TRUE(jobs.ok()) << jobs.status();
    ASSERT_EQ(jobs->size(), 2u);
    EXPECT_EQ(jobs->at(0).info.id(), std::string(32, 'c'));
    EXPECT_EQ(jobs->at(1).info.id(), std::string(32, 'a'));
    ASSERT_EQ(damaged.size(), 1u);
    EXPECT_EQ(damaged[0].id, 2);
    EXPECT_EQ(damaged[0].info.id(), std::string(32, 'b'));
    EXPECT_EQ(damaged[0].info.start_realtime_ns(), static_cast<uint64_t>('b'));
    EXPECT_TRUE(damaged[0].ended);
    EXPECT_EQ(damaged[0].touched_ns, 7u);
    EXPECT_TRUE(absl::IsDataLoss(catalogue.FindJob(std::string(32, 'b')).status()));
  }
}

TEST(OpenStore, RefusesADirectory) {
  test::TemporaryDirectory directory;
  ExpectRefused(directory.path(), "is not a database of lull");
}

TEST(OpenStore, RefusesADatabaseThatAnotherProcessWrites) {
  test::TemporaryDirectory directory;
  auto first = Store::Open(directory / "a.db");
  ASSERT_TRUE(first.ok());
  auto second = Store::Open(directory / "a.db");
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.status().message(),
              HasSubstr("another lulld (pid " + std::to_string(getpid()) + ")"));
}

// As nobody, because root may write to everything.
TEST(OpenStore, SaysWhatIsNotWritable) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  ASSERT_EQ(chmod((directory / "a.db").c_str(), 0444), 0);
  ASSERT_EQ(chmod((directory / "a.db.lock").c_str(), 0666), 0);
  ASSERT_EQ(chmod(directory.path().c_str(), 0755), 0);
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  pid_t child = fork();
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(1);
    auto store = Store::Open(directory / "a.db");
    std::string text(store.status().message());
    _exit(write(ends[1], text.data(), text.size()) > 0 ? 0 : 1);
  }
  close(ends[1]);
  char text[1000] = {};
  ssize_t size = read(ends[0], text, sizeof(text) - 1);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_GT(size, 0);
  EXPECT_THAT(text, HasSubstr("cannot write to the database " + (directory / "a.db")));
  EXPECT_THAT(text, HasSubstr("--database"));
}

}  // namespace
}  // namespace lull::storage
