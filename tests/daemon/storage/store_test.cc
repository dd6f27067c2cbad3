#include "daemon/storage/store.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <algorithm>
#include <random>

#include "daemon/storage/block_codec.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::storage {
namespace {

using aggregate::Event;

class StoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto opened = Store::Open(directory_ / "a.db");
    ASSERT_TRUE(opened.ok()) << opened.status();
    store_ = *std::move(opened);
  }

  StoreWriter& writer() { return store_->writer(); }
  std::unique_ptr<StoreReader> Reader() { return *store_->NewReader(); }

  ProcessRow MakeJob(char digit) {
    JobRow job;
    job.info.set_id(std::string(32, digit));
    EXPECT_TRUE(writer().Begin().ok());
    EXPECT_TRUE(writer().catalogue().PutJob(job).ok());
    ProcessRow process;
    process.job = job.id;
    process.info.set_key(1);
    EXPECT_TRUE(writer().catalogue().PutProcess(process).ok());
    EXPECT_TRUE(writer().Commit().ok());
    return process;
  }

  void Append(const ProcessRow& process, uint64_t first, size_t count) {
    std::vector<Event> events(count);
    for (size_t i = 0; i < count; ++i) {
      events[i].start_ns = 1000 * (first + i);
      events[i].series = 1;
      events[i].duration_ns = (first + i) * 0x9e3779b97f4a7c15 >> 40;
    }
    ASSERT_TRUE(writer().Begin().ok());
    ASSERT_TRUE(writer().events().Append(process, 0, first, events).ok());
    ASSERT_TRUE(writer().Commit().ok());
  }

  std::vector<uint64_t> Starts(const ProcessRow& process, uint64_t begin,
                               uint64_t end) {
    std::vector<uint64_t> starts;
    EXPECT_TRUE(Reader()
                    ->events()
                    .Read(process.id, begin, end,
                          [&](const Event& e) { starts.push_back(e.start_ns); })
                    .ok());
    std::sort(starts.begin(), starts.end());
    return starts;
  }

  int64_t Count(const std::string& sql) {
    sqlite3* db = nullptr;
    EXPECT_EQ(sqlite3_open((directory_ / "a.db").c_str(), &db), SQLITE_OK);
    sqlite3_stmt* statement = nullptr;
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &statement, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(statement), SQLITE_ROW);
    int64_t value = sqlite3_column_int64(statement, 0);
    sqlite3_finalize(statement);
    sqlite3_close(db);
    return value;
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<Store> store_;
};

TEST_F(StoreTest, ShowsNothingBeforeTheCommitAndAllAfterIt) {
  ASSERT_TRUE(writer().Begin().ok());
  JobRow job;
  job.info.set_id(std::string(32, 'b'));
  ASSERT_TRUE(writer().catalogue().PutJob(job).ok());
  EXPECT_EQ(Reader()->catalogue().Jobs(0)->size(), 0u);
  EXPECT_EQ(writer().catalogue().Jobs(0)->size(), 1u);
  auto before = Reader();
  EXPECT_EQ(before->catalogue().Jobs(0)->size(), 0u);
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(Reader()->catalogue().Jobs(0)->size(), 1u);
  EXPECT_EQ(before->catalogue().Jobs(0)->size(), 0u)
      << "a reader sees the state of one commit";
}

TEST_F(StoreTest, ForgetsWhatIsRolledBack) {
  ASSERT_TRUE(writer().Begin().ok());
  JobRow job;
  job.info.set_id(std::string(32, 'b'));
  ASSERT_TRUE(writer().catalogue().PutJob(job).ok());
  writer().Rollback();
  EXPECT_EQ(Reader()->catalogue().Jobs(0)->size(), 0u);
}

TEST_F(StoreTest, MergesSmallRunsAndKeepsEveryEvent) {
  ProcessRow process = MakeJob('a');
  std::mt19937 random(5);
  uint64_t position = 0;
  while (position < 100'000) {
    size_t count = 1 + random() % 700;
    Append(process, position, count);
    position += count;
  }
  std::vector<uint64_t> starts = Starts(process, 0, UINT64_MAX);
  ASSERT_EQ(starts.size(), position);
  for (uint64_t i = 0; i < position; ++i) ASSERT_EQ(starts[i], 1000 * i);
  EXPECT_LE(Count("SELECT count(*) FROM blocks"),
            static_cast<int64_t>(position / (kMaxBlockEvents / 2)) + 32);
}

TEST_F(StoreTest, MergesAcrossNoGapAndLetsNoBlocksOverlap) {
  ProcessRow process = MakeJob('a');
  std::mt19937 random(6);
  uint64_t position = 0, stored = 0;
  for (int i = 0; i < 500; ++i) {
    size_t count = 1 + random() % 100;
    Append(process, position, count);
    stored += count;
    position += count + (random() % 4 == 0 ? random() % 50 : 0);
  }
  EXPECT_EQ(Starts(process, 0, UINT64_MAX).size(), stored);
  EXPECT_EQ(Count("SELECT sum(count) FROM blocks"), static_cast<int64_t>(stored));
  EXPECT_EQ(Count("SELECT count(*) FROM blocks a JOIN blocks b ON a.id < b.id AND "
                  "a.first_position < b.first_position + b.count AND "
                  "b.first_position < a.first_position + a.count"),
            0);
}

TEST_F(StoreTest, StoresARunThatIsLongerThanABlock) {
  ProcessRow process = MakeJob('a');
  Append(process, 0, 3 * kMaxBlockEvents + 17);
  EXPECT_EQ(Starts(process, 0, UINT64_MAX).size(), 3 * kMaxBlockEvents + 17);
}

TEST_F(StoreTest, FindsTheEventsOfARangeAndNoOthers) {
  ProcessRow process = MakeJob('a');
  for (uint64_t i = 0; i < 50; ++i) Append(process, i * 10, 10);
  EXPECT_EQ(Starts(process, 5000, 7000), (std::vector<uint64_t>{5000, 6000}));
  EXPECT_EQ(Starts(process, 499'000, UINT64_MAX), (std::vector<uint64_t>{499'000}));
}

// What `arg0` of the events says, in the order in which they come.
std::vector<uint64_t> InOrder(StoreReader& reader, int64_t process, uint64_t begin,
                              uint64_t end) {
  std::vector<uint64_t> names;
  EXPECT_TRUE(
      reader.events()
          .Read(process, begin, end, [&](const Event& e) { names.push_back(e.arg0); })
          .ok());
  return names;
}

Event Named(uint64_t name, uint64_t start_ns, uint64_t duration_ns = 0) {
  Event event;
  event.arg0 = name;
  event.start_ns = start_ns;
  event.duration_ns = duration_ns;
  event.series = 1;
  return event;
}

TEST_F(StoreTest, GivesTheEventsOfARingInTheOrderOfTheirPositions) {
  ProcessRow process = MakeJob('a');
  ASSERT_TRUE(writer().Begin().ok());
  // The first block ends last, as an index by time has it.
  ASSERT_TRUE(
      writer().events().Append(process, 0, 0, {Named(1, 10), Named(2, 9000)}).ok());
  ASSERT_TRUE(
      writer().events().Append(process, 0, 2, {Named(3, 20), Named(4, 30)}).ok());
  ASSERT_TRUE(writer().events().Append(process, 0, 7, {Named(5, 25)}).ok());  // a gap
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(InOrder(*Reader(), process.id, 0, UINT64_MAX),
            (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(InOrder(*Reader(), process.id, 15, 30), (std::vector<uint64_t>{3, 5}));
}

TEST_F(StoreTest, MergesRingsByTheEndsOfTheirEvents) {
  ProcessRow process = MakeJob('a');
  ASSERT_TRUE(writer().Begin().ok());
  ASSERT_TRUE(
      writer().events().Append(process, 9, 0, {Named(1, 10, 5), Named(4, 40)}).ok());
  ASSERT_TRUE(writer()
                  .events()
                  .Append(process, 3, 0, {Named(2, 20), Named(3, 1, 34), Named(5, 41)})
                  .ok());
  ASSERT_TRUE(writer().events().Append(process, 4, 0, {Named(6, 2, 39)}).ok());
  ASSERT_TRUE(writer().Commit().ok());
  EXPECT_EQ(InOrder(*Reader(), process.id, 0, UINT64_MAX),
            (std::vector<uint64_t>{1, 2, 3, 4, 5, 6}));
}

TEST_F(StoreTest, MergesManyRingsWhoseBlocksWereMerged) {
  ProcessRow process = MakeJob('a');
  std::mt19937 random(6);
  std::vector<uint64_t> positions(20);
  uint64_t now = 0;
  for (int round = 0; round < 300; ++round) {
    ASSERT_TRUE(writer().Begin().ok());
    size_t ring = random() % positions.size();
    std::vector<Event> events(1 + random() % 400);
    for (Event& event : events) event = Named(now, now), ++now;
    ASSERT_TRUE(
        writer()
            .events()
            .Append(process, static_cast<uint32_t>(ring), positions[ring], events)
            .ok());
    positions[ring] += events.size();
    ASSERT_TRUE(writer().Commit().ok());
  }
  std::vector<uint64_t> names = InOrder(*Reader(), process.id, 0, UINT64_MAX);
  EXPECT_EQ(names.size(), now);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST_F(StoreTest, DeletesAJobInSmallStepsAndNoOther) {
  ProcessRow doomed = MakeJob('a');
  ProcessRow kept = MakeJob('b');
  for (uint64_t i = 0; i < 100; ++i) {
    Append(doomed, i * 5000, 5000);
    Append(kept, i * 5000, 5000);
  }
  uint64_t before = *writer().UsedBytes();
  ASSERT_TRUE(writer().catalogue().MarkForDeletion(doomed.job).ok());
  EXPECT_EQ(Reader()->catalogue().Jobs(0)->size(), 1u) << "it is out of sight at once";
  int steps = 0;
  while (*writer().DeleteSome()) ++steps;
  EXPECT_GT(steps, 2) << "small steps";
  EXPECT_EQ(
      Count("SELECT count(*) FROM blocks WHERE job=" + std::to_string(doomed.job)), 0);
  EXPECT_EQ(Count("SELECT count(*) FROM jobs"), 1);
  EXPECT_EQ(Starts(kept, 0, UINT64_MAX).size(), 500'000u);
  EXPECT_LT(*writer().UsedBytes(), before * 2 / 3);
}

}  // namespace
}  // namespace lull::storage
