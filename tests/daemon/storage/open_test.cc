#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "daemon/storage/sqlite_store.h"
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
  auto store = OpenSqliteStore(path);
  ASSERT_TRUE(store.ok()) << store.status();
  StoreWriter& writer = (*store)->writer();
  ASSERT_TRUE(writer.Begin().ok());
  JobRow job;
  job.uuid = std::string(32, 'a');
  job.command = std::string(20000, 'x');
  ASSERT_TRUE(writer.PutJob(job).ok());
  ASSERT_TRUE(writer.Commit().ok());
}

void ExpectRefused(const std::string& path, const std::string& why) {
  std::string before = ReadAll(path);
  auto store = OpenSqliteStore(path);
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
  EXPECT_TRUE(OpenSqliteStore(directory / "a.db").ok());
}

TEST(OpenStore, FindsWhatAnEarlierOneStored) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto reader = (*store)->NewReader();
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ((*(*reader)->Jobs(0)).size(), 1u);
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
    auto store = OpenSqliteStore(directory / name);
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

// Takes back what schema 11 changed.
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
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db", kBackToSchema7);
  Sql(directory / "a.db",
      "DROP TABLE stretches; ALTER TABLE jobs DROP COLUMN dormant;"
      "ALTER TABLE jobs DROP COLUMN attached;"
      "INSERT INTO jobs(uuid, name, start_ns) VALUES('5', 'old', 7);"
      "PRAGMA user_version=5; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto jobs = (*store)->writer().reader().FindJob("5");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().name, "old");
  EXPECT_FALSE(jobs->front().dormant);
  EXPECT_FALSE(jobs->front().attached);
  EXPECT_TRUE((*store)->writer().PutStretch(jobs->front().id, {1, 8, 9}).ok());
  auto stretches = (*store)->writer().reader().Stretches(jobs->front().id);
  ASSERT_TRUE(stretches.ok()) << stretches.status();
  ASSERT_EQ(stretches->size(), 1u);
  EXPECT_EQ(stretches->front().end_ns, 9u);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema6) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db", kBackToSchema7);
  Sql(directory / "a.db",
      "ALTER TABLE jobs DROP COLUMN attached;"
      "INSERT INTO jobs(uuid, name, start_ns, dormant) VALUES('6', 'old', 7, 1);"
      "PRAGMA user_version=6; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  auto jobs = (*store)->writer().reader().FindJob("6");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_TRUE(jobs->front().dormant);
  EXPECT_FALSE(jobs->front().attached);
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema7) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
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
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreReader& reader = (*store)->writer().reader();
  auto jobs = reader.FindJob("7");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  auto processes = reader.Processes(jobs->front().id);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 1u);
  const ProcessRow& process = processes->front();
  EXPECT_EQ(process.pid, 42u);
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
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db", kBackToSchema8);
  Sql(directory / "a.db",
      "INSERT INTO jobs(uuid, name, start_ns, touched_realtime_ns) "
      "VALUES('8', 'old', 7, 1234567890123);"
      "PRAGMA user_version=8; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreReader& reader = (*store)->writer().reader();
  auto jobs = reader.FindJob("8");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_EQ(jobs->front().touched_ns, 1234567890123u);
  EXPECT_FALSE(jobs->front().cut_off);
  auto clock = reader.Clock();
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ(clock->now_ns, 0u) << "it had none";
}

TEST(OpenStore, ConvertsTheDatabaseOfSchema9) {
  test::TemporaryDirectory directory;
  MakeDatabase(directory / "a.db");
  Sql(directory / "a.db", kBackToSchema10);
  Sql(directory / "a.db", kBackToSchema9);
  Sql(directory / "a.db",
      "INSERT INTO jobs(uuid, name, start_ns) VALUES('9', 'old', 7);"
      "INSERT INTO processes(job, key, pid) SELECT id, 1, 42 FROM jobs WHERE uuid='9';"
      "PRAGMA user_version=9; PRAGMA wal_checkpoint(TRUNCATE)");
  auto store = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(store.ok()) << store.status();
  StoreWriter& writer = (*store)->writer();
  auto jobs = writer.reader().FindJob("9");
  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 1u);
  EXPECT_FALSE(jobs->front().no_host_samples);
  auto processes = writer.reader().Processes(jobs->front().id);
  ASSERT_TRUE(processes.ok()) << processes.status();
  ASSERT_EQ(processes->size(), 1u);
  EXPECT_EQ(processes->front().worker_of, 0u);

  jobs->front().no_host_samples = true;
  processes->front().worker_of = 3;
  ASSERT_TRUE(writer.PutJob(jobs->front()).ok());
  ASSERT_TRUE(writer.PutProcess(processes->front()).ok());
  EXPECT_TRUE(writer.reader().FindJob("9")->front().no_host_samples);
  EXPECT_EQ(writer.reader().Processes(jobs->front().id)->front().worker_of, 3u);
}

TEST(OpenStore, RefusesADirectory) {
  test::TemporaryDirectory directory;
  ExpectRefused(directory.path(), "is not a database of lull");
}

TEST(OpenStore, RefusesADatabaseThatAnotherProcessWrites) {
  test::TemporaryDirectory directory;
  auto first = OpenSqliteStore(directory / "a.db");
  ASSERT_TRUE(first.ok());
  auto second = OpenSqliteStore(directory / "a.db");
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
    auto store = OpenSqliteStore(directory / "a.db");
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
