#include "daemon/collector/ingest/retention.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "daemon/storage/store.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::collector {
namespace {

const absl::Time kNow = absl::FromUnixSeconds(1'700'000'000);

class RetentionTest : public ::testing::Test {
 protected:
  void SetUp() override { store_ = *storage::Store::Open(directory_ / "a.db"); }

  storage::StoreWriter& writer() { return store_->writer(); }

  // A job of about `kilobytes` that was last heard of `silent` ago.
  void AddJob(char digit, absl::Duration silent, bool ended, size_t kilobytes = 1) {
    storage::JobRow job;
    job.info.set_id(std::string(32, digit));
    job.ended = ended;
    job.touched_ns = static_cast<uint64_t>(absl::ToUnixNanos(kNow - silent));
    job.info.set_start_realtime_ns(job.touched_ns);
    ASSERT_TRUE(writer().Begin().ok());
    ASSERT_TRUE(writer().catalogue().PutJob(job).ok());
    storage::ProcessRow process;
    process.job = job.id;
    process.info.set_key(1);
    ASSERT_TRUE(writer().catalogue().PutProcess(process).ok());
    std::vector<aggregate::Event> events(kilobytes * 60);
    for (size_t i = 0; i < events.size(); ++i) {  // 16 bytes each that do not compress
      events[i].arg0 = (i + 1) * 0x9e3779b97f4a7c15;
      events[i].arg1 = (i + 1) * 0xbf58476d1ce4e5b9;
    }
    ASSERT_TRUE(writer().events().Append(process, 0, 0, events).ok());
    ASSERT_TRUE(writer().Commit().ok());
  }

  void Pin(char digit, bool pinned = true) {
    storage::JobRow job = FindJob(digit);
    v1::JobMarks marks;
    marks.set_pinned(pinned);
    ASSERT_TRUE(writer().catalogue().PutMarks(job.id, marks).ok());
    ASSERT_TRUE(writer().catalogue().PutJob(job).ok());
    EXPECT_EQ(FindJob(digit).marks.pinned(), pinned);
  }
  storage::JobRow FindJob(char digit) {
    return writer().catalogue().FindJob(std::string(32, digit)).value().at(0);
  }

  void Sql(const char* statement) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ / "a.db").c_str(), &db), SQLITE_OK);
    ASSERT_EQ(sqlite3_exec(db, statement, nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }

  std::string Run(RetentionLimits limits, const std::string& in_use = "") {
    Retention retention(writer(), limits);
    for (int i = 0; i < 1000; ++i) {
      auto more = retention.Step(
          kNow, [&](const std::string& uuid) { return uuid.substr(0, 1) == in_use; });
      EXPECT_TRUE(more.ok()) << more.status();
      if (!more.ok() || !*more) break;
    }
    std::string left;
    const auto jobs = writer().catalogue().Jobs(0).value();
    for (const storage::JobRow& job : jobs) left.insert(0, 1, job.info.id()[0]);
    return left;  // oldest first
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
};

TEST_F(RetentionTest, KeepsWhatIsYoungAndSmall) {
  AddJob('a', absl::Hours(20), true);
  AddJob('b', absl::Hours(10), false);
  EXPECT_EQ(Run({}), "ab");
}

TEST_F(RetentionTest, DeletesJobsThatEndedTooLongAgo) {
  AddJob('a', absl::Hours(31 * 24), true);
  AddJob('b', absl::Hours(29 * 24), true);
  EXPECT_EQ(Run({}), "b");
}

TEST_F(RetentionTest, DeletesTheOldestEndedJobsUntilTheSizeIsRight) {
  AddJob('a', absl::Hours(5), true, 600);
  AddJob('b', absl::Hours(4), false, 600);  // runs
  AddJob('c', absl::Hours(3), true, 600);
  AddJob('d', absl::Hours(2), true, 600);
  RetentionLimits limits;
  limits.max_bytes = *writer().UsedBytes() * 6 / 10;
  EXPECT_EQ(Run(limits), "bd");
  EXPECT_LE(*writer().UsedBytes(), limits.max_bytes);
}

TEST_F(RetentionTest, TakesAJobThatWasSilentForLongForEnded) {
  AddJob('a', absl::Hours(40 * 24), false);
  RetentionLimits limits;
  limits.settle = absl::ZeroDuration();
  EXPECT_EQ(Run(limits), "");
}

TEST_F(RetentionTest, DeletesADamagedJobWhenItsTimeHasCome) {
  for (char digit : {'a', 'b', 'c'}) AddJob(digit, absl::Hours('d' - digit), true, 600);
  Sql("UPDATE jobs SET job_info=x'ff' WHERE uuid LIKE 'b%'");
  RetentionLimits limits;
  limits.max_bytes = *writer().UsedBytes() * 8 / 10;
  EXPECT_EQ(Run(limits), "c") << "the oldest one first, which is sound";
  std::vector<storage::JobRow> damaged;
  ASSERT_TRUE(writer().catalogue().Jobs(0, &damaged).ok());
  EXPECT_EQ(damaged.size(), 1u);
  limits.max_bytes = *writer().UsedBytes() * 6 / 10;
  EXPECT_EQ(Run(limits), "c");
  damaged.clear();
  ASSERT_TRUE(writer().catalogue().Jobs(0, &damaged).ok());
  EXPECT_TRUE(damaged.empty());
}

TEST_F(RetentionTest, GivesARelayTimeToComeBackToACollectorThatJustStarted) {
  AddJob('a', absl::Hours(40 * 24), false);
  Retention retention(writer(), {});
  auto nobody = [](const std::string&) { return false; };
  EXPECT_FALSE(*retention.Step(kNow, nobody));
  EXPECT_FALSE(*retention.Step(kNow + absl::Seconds(20), nobody));
  EXPECT_TRUE(*retention.Step(kNow + absl::Seconds(40), nobody));
}

TEST_F(RetentionTest, DeletesOneJobForEachTimeThatTheDiskIsFullAndHalfAtMost) {
  for (char digit : {'a', 'b', 'c', 'd'}) AddJob(digit, absl::Hours(5), true, 600);
  AddJob('e', absl::Hours(30), false, 600);  // abandoned, it seems
  Retention retention(writer(), {});
  auto nobody = [](const std::string&) { return false; };
  auto left = [&] {
    while (*retention.Step(kNow, nobody)) {
    }
    std::string left;
    const auto jobs = writer().catalogue().Jobs(0).value();
    for (const storage::JobRow& job : jobs) left.insert(0, 1, job.info.id()[0]);
    return left;
  };
  EXPECT_EQ(left(), "eabcd");
  retention.NeedRoom();
  EXPECT_EQ(left(), "ebcd");
  EXPECT_EQ(left(), "ebcd") << "who writes next says whether that was enough";
  retention.NeedRoom();
  EXPECT_EQ(left(), "ecd");
  retention.NeedRoom();
  EXPECT_EQ(left(), "ed");
  for (int i = 0; i < 5; ++i) {
    retention.NeedRoom();
    EXPECT_EQ(left(), "ed") << "somebody else fills the disk";
  }
  retention.HasRoom();
  EXPECT_EQ(left(), "ed");
}

TEST_F(RetentionTest, KeepsAJobThatReportsNow) {
  AddJob('a', absl::Hours(40 * 24), true);
  EXPECT_EQ(Run({}, "a"), "a");
}

TEST_F(RetentionTest, NeverDeletesAPinnedJob) {
  for (char digit : {'a', 'b', 'c', 'd'}) {
    AddJob(digit, absl::Hours(40 * 24), true, 600);
    // Its row is put again when it reports.
    if (digit == 'b' || digit == 'd') Pin(digit);
  }
  AddJob('e', absl::Hours(5), true, 600);
  Sql("UPDATE jobs SET job_info=x'ff' WHERE uuid LIKE 'd%'");  // damaged, and pinned
  EXPECT_EQ(Run({}), "be") << "age";
  RetentionLimits limits;
  limits.max_bytes = 1;
  EXPECT_EQ(Run(limits), "b") << "size";
  Retention retention(writer(), {});
  auto nobody = [](const std::string&) { return false; };
  retention.NeedRoom();
  while (*retention.Step(kNow, nobody)) {
  }
  EXPECT_EQ(Run({}), "b") << "a full disk";
  std::vector<storage::JobRow> damaged;
  ASSERT_TRUE(writer().catalogue().Jobs(0, &damaged).ok());
  EXPECT_EQ(damaged.size(), 1u);
  Pin('b', false);
  EXPECT_EQ(Run({}), "");
}

TEST_F(RetentionTest, KeepsAJobOfWhichItCannotTellWhetherItIsPinned) {
  for (char digit : {'a', 'b'}) AddJob(digit, absl::Hours(40 * 24), true, 600);
  Pin('b');
  Sql("UPDATE jobs SET marks=x'ff' WHERE uuid LIKE 'b%'");
  EXPECT_EQ(Run({}), "") << "what is sound and not pinned goes";
  std::vector<storage::JobRow> damaged;
  ASSERT_TRUE(writer().catalogue().Jobs(0, &damaged).ok());
  ASSERT_EQ(damaged.size(), 1u);
  ASSERT_TRUE(writer().catalogue().PutMarks(damaged[0].id, {}).ok());
  EXPECT_EQ(Run({}), "");
  damaged.clear();
  ASSERT_TRUE(writer().catalogue().Jobs(0, &damaged).ok());
  EXPECT_TRUE(damaged.empty()) << "unpinned, it is one like any other";
}

}  // namespace
}  // namespace lull::collector
