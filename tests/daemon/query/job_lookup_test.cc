#include "daemon/query/job_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "daemon/query/engine.h"
#include "daemon/storage/store.h"
#include "tests/daemon/storage/temporary_directory.h"

namespace lull::query {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class JobLookup : public ::testing::Test {
 protected:
  void SetUp() override { store_ = *storage::Store::Open(directory_ / "a.db"); }

  void AddJob(const std::string& start_of_id, const std::string& name, uint64_t start,
              const std::string& tag = "") {
    storage::JobRow job;
    job.info.set_id(start_of_id + std::string(32 - start_of_id.size(), '0'));
    job.info.set_name(name);
    job.info.set_start_realtime_ns(start);
    if (!tag.empty()) job.marks.add_tags(tag);
    ASSERT_TRUE(store_->writer().Begin().ok());
    ASSERT_TRUE(store_->writer().catalogue().PutJob(job).ok());
    ASSERT_TRUE(store_->writer().Commit().ok());
  }

  void Damage(char first_digit, const std::string& column = "job_info") {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open((directory_ / "a.db").c_str(), &db), SQLITE_OK);
    const std::string sql =
        "UPDATE jobs SET " + column + "=x'ff' WHERE uuid LIKE '" + first_digit + "%'";
    ASSERT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(db);
  }

  absl::StatusOr<storage::JobRow> Find(const std::string& text) {
    return FindJob(**store_->NewReader(), text);
  }

  test::TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
};

TEST_F(JobLookup, TakesTheNewestByDefault) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 30);
  AddJob("cc", "third", 20);
  EXPECT_EQ(Find("")->info.name(), "second");
}

TEST_F(JobLookup, TakesAnOldTraceThatWasImportedJustNow) {
  AddJob("aa", "recorded", 10);
  AddJob("bb", "recorded", 30);
  storage::JobRow trace;
  trace.info.set_id(std::string(32, 'c'));
  trace.info.set_name("trace");
  trace.info.set_start_realtime_ns(5);
  trace.info.mutable_imported()->set_format("torch.profiler");
  trace.touched_ns = 40;
  ASSERT_TRUE(store_->writer().Begin().ok());
  ASSERT_TRUE(store_->writer().catalogue().PutJob(trace).ok());
  ASSERT_TRUE(store_->writer().Commit().ok());
  EXPECT_EQ(Find("")->info.name(), "trace");
  AddJob("dd", "later", 50);
  EXPECT_EQ(Find("")->info.name(), "later");
}

TEST_F(JobLookup, TakesTheNewestOfANameAndABeginningOfAnId) {
  AddJob("aa", "train", 10);
  AddJob("bb", "train", 20);
  AddJob("cc", "aa", 5);
  EXPECT_EQ(Find("train")->info.id().substr(0, 2), "bb");
  EXPECT_EQ(Find("bb00")->info.id().substr(0, 2), "bb");
  EXPECT_EQ(Find("aa")->info.id().substr(0, 2), "cc") << "so short is no id";
  EXPECT_EQ(Find("bb0").status().code(), absl::StatusCode::kNotFound);
}

// Whoever may record jobs chooses their names.
TEST_F(JobLookup, NoNameTakesTheIdOfAnotherJob) {
  const std::string id = "aa" + std::string(30, '0');
  AddJob("aa", "gate", 10);
  AddJob("bb", id, 20);
  AddJob("cc", "aa000000", 30);
  EXPECT_EQ(Find(id)->info.name(), "gate");
  EXPECT_EQ(FindJobToMark(**store_->NewReader(), id)->info.name(), "gate");
  EXPECT_EQ(Find("aa000000").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(
      Find("aa000000").status().message(),
      HasSubstr("is the name of job cc0000000000 and the beginning of the id of "
                "job aa0000000000"));
  Damage('a');
  EXPECT_EQ(Find(id).status().code(), absl::StatusCode::kDataLoss);
  const std::string elsewhere = "dd" + std::string(30, '0');
  AddJob("ee", elsewhere, 40);
  EXPECT_EQ(Find(elsewhere).status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobLookup, ListsTheCandidatesOfAnAmbiguousBeginning) {
  AddJob("abcd1", "x", 10);
  AddJob("abcd2", "y", 20);
  AddJob("f", "z", 30);
  absl::Status status = Find("abcd").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("abcd10000000 (x)"));
  EXPECT_THAT(status.message(), HasSubstr("abcd20000000 (y)"));
  EXPECT_THAT(status.message(), Not(HasSubstr("(z)")));
}

TEST_F(JobLookup, NamesTheNewestJobsWhenThereIsNoneSuch) {
  EXPECT_EQ(Find("").status().code(), absl::StatusCode::kNotFound);
  for (int i = 0; i < 9; ++i) AddJob("a" + std::to_string(i), "", 10 + i);
  absl::Status status = Find("nothing").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("a80000000000"));
  EXPECT_THAT(status.message(), Not(HasSubstr("a00000000000")));
}

TEST_F(JobLookup, TakesWhatWasImportedFromTheFutureOnlyByWhenItCame) {
  storage::JobRow trace;
  trace.info.set_id(std::string(32, 'f'));
  trace.info.set_start_realtime_ns(1000);
  trace.info.mutable_imported()->set_format("torch.profiler");
  trace.touched_ns = 5;
  ASSERT_TRUE(store_->writer().Begin().ok());
  ASSERT_TRUE(store_->writer().catalogue().PutJob(trace).ok());
  ASSERT_TRUE(store_->writer().Commit().ok());
  AddJob("aa", "older", 3);
  AddJob("bb", "newer", 10);
  EXPECT_EQ(Find("")->info.name(), "newer");
}

TEST_F(JobLookup, ReadsNoRowsOfJobsThatWereNotAskedFor) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20);
  AddJob("cc", "third", 30);
  std::vector<storage::JobRow> damaged;
  auto reader = *store_->NewReader();
  EXPECT_EQ(reader->catalogue().LatestJobs(&damaged)->size(), 1u);
  EXPECT_EQ(reader->catalogue().JobsWith("second", &damaged)->size(), 1u);
  EXPECT_EQ(reader->catalogue().JobsWith("aa0", &damaged)->size(), 1u);
}

TEST_F(JobLookup, FindsJobsBesideADamagedOneAndSaysWhichOneThatIs) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20);
  AddJob("cc", "third", 30);
  Damage('b');
  EXPECT_EQ(Find("")->info.name(), "third");
  EXPECT_EQ(Find("first")->info.name(), "first");
  EXPECT_EQ(Find("cc00")->info.name(), "third");
  EXPECT_EQ(Find("bb00").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Find("bb00").status().message(), HasSubstr("bb0000000000"));
  EXPECT_EQ(Find("second").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(JobLookup, FindsADamagedJobForWhoChangesItsMarksAlone) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20);
  Damage('b');
  auto found = FindJobToMark(**store_->NewReader(), "bb00");
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->info.id().substr(0, 3), "bb0");
  EXPECT_NE(found->id, 0);
  EXPECT_EQ(FindJobToMark(**store_->NewReader(), "first")->info.name(), "first");
  EXPECT_EQ(FindJobToMark(**store_->NewReader(), "x").status().code(),
            absl::StatusCode::kNotFound);
}

TEST_F(JobLookup, DoesNotTakeAnOlderJobForADamagedNewestOne) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20);
  Damage('b');
  EXPECT_EQ(Find("").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(Find("").status().message(), HasSubstr("bb0000000000"));
}

TEST_F(JobLookup, ListsJobsBesideDamagedOnes) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20);
  Damage('b');
  v1::ListJobsReply reply;
  absl::Status listed = ListJobs(
      *store_, [](const std::string&) { return false; }, {}, &reply);
  ASSERT_TRUE(listed.ok()) << listed;
  ASSERT_EQ(reply.jobs_size(), 1);
  EXPECT_EQ(reply.jobs(0).name(), "first");
  ASSERT_EQ(reply.damaged_jobs_size(), 1);
  EXPECT_EQ(reply.damaged_jobs(0).substr(0, 3), "bb0");
}

TEST_F(JobLookup, OfDamagedJobsThoseThatHaveATagAreListedWithIt) {
  AddJob("aa", "first", 10);
  AddJob("bb", "second", 20, "naive");
  AddJob("cc", "third", 30);
  AddJob("dd", "fourth", 40, "naive");
  for (char id : {'b', 'c', 'd'}) Damage(id);
  Damage('d', "marks");
  v1::ListJobsRequest request;
  request.add_tags("naive");
  v1::ListJobsReply reply;
  const auto no_relay = [](const std::string&) { return false; };
  ASSERT_TRUE(ListJobs(*store_, no_relay, request, &reply).ok());
  EXPECT_EQ(reply.jobs_size(), 0);
  // The third has none, and of the fourth nobody can read whether it has one.
  ASSERT_EQ(reply.damaged_jobs_size(), 1);
  EXPECT_EQ(reply.damaged_jobs(0).substr(0, 3), "bb0");
  reply.Clear();
  ASSERT_TRUE(ListJobs(*store_, no_relay, {}, &reply).ok());
  EXPECT_EQ(reply.damaged_jobs_size(), 3);
}

}  // namespace
}  // namespace lull::query
