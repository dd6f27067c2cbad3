// Jobs that launchers call by one name although they are several.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "daemon/collector/ingest/job_state.h"
#include "daemon/query/engine.h"
#include "daemon/query/run_parts.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kEpochNs = 1'700'000'000'000'000'000;

struct Told {
  uint32_t job = 1;
  std::vector<int32_t> ranks;
  uint64_t start_s = 0;
  uint64_t end_s = 0;  // of its last event
  bool ended = true;   // somebody saw that
  std::string host = "h";
  std::string run = "torchrun:456";
};

class Mixups : public testing::Test {
 protected:
  void SetUp() override {
    auto store = storage::Store::Open(directory_ / "a.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  void Tell(const Told& told) {
    lull::v1::Hello hello = MakeHello(MakeJobId(told.job));
    hello.mutable_job()->set_host(told.host);
    hello.mutable_job()->set_boot_id(told.host);
    hello.mutable_job()->set_start_realtime_ns(kEpochNs + told.start_s * kSecond);
    lull::v1::Batch batch;
    batch.set_sequence(1);
    for (int32_t rank : told.ranks) {
      const auto key = static_cast<uint64_t>(rank) + 1;
      lull::v1::ProcessInfo* process = batch.add_processes();
      *process = MakeProcess(key, 100 + static_cast<uint32_t>(rank), rank);
      process->set_world_size(2);
      process->set_run_id(told.run);
      AddStacks(batch, key);
      TestEvent poll;
      poll.type = static_cast<uint32_t>(aggregate::EventType::kHostWait);
      poll.api = kApiPoll;
      poll.python = 2;
      poll.start_ns = kJobStartNs + (told.end_s - told.start_s) * kSecond - kMs;
      poll.duration_ns = kMs;
      AddRun(batch, key, 0, 0, {poll});
      AddCounters(batch, key, 0, 1, poll.start_ns + kMs);
    }
    if (told.ended) {
      batch.mutable_job_end()->set_end_ns(kJobStartNs +
                                          (told.end_s - told.start_s) * kSecond);
    }
    auto job = collector::JobState::Load(store_->writer(), hello);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Apply(hello);
    ASSERT_TRUE((*job)->Apply(batch).empty());
    storage::StoreWriter& writer = store_->writer();
    ASSERT_TRUE(in_one_ || writer.Begin().ok());
    ASSERT_TRUE((*job)->Flush(writer, kEpochNs + told.end_s * kSecond).ok());
    ASSERT_TRUE(in_one_ || writer.Commit().ok());
  }

  using Rows = std::set<std::set<std::string>>;
  // The ids of the parts of each row of `lull jobs`.
  Rows Listed() {
    lull::v1::ListJobsReply jobs;
    const absl::Status status = query::ListJobs(
        *store_, [this](const std::string& job) { return reporting_.contains(job); },
        {}, &jobs);
    EXPECT_TRUE(status.ok()) << status;
    Rows rows;
    for (const lull::v1::Job& job : jobs.jobs()) {
      std::set<std::string> ids = {job.id()};
      for (const auto& part : job.parts()) ids.insert(part.id());
      rows.insert(ids);
    }
    return rows;
  }

  static std::string Id(uint32_t job) { return MakeJobId(job); }

  TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
  std::set<std::string> reporting_;
  bool in_one_ = false;
};

// One host of the first attempt was recorded, and died.
TEST_F(Mixups, ADeadHostIsNoPartOfTheNextAttempt) {
  Tell({.job = 1, .ranks = {1}, .start_s = 0, .end_s = 100, .ended = false});
  Tell({.job = 2, .ranks = {0}, .start_s = 5'000, .end_s = 6'000});
  Tell({.job = 3, .ranks = {1}, .start_s = 5'001, .end_s = 6'000});
  EXPECT_EQ(Listed(), (Rows{{Id(1)}, {Id(2), Id(3)}}));
}

// Two jobs on two hosts each, with a run id that stands in a script: who belongs to
// whom?
TEST_F(Mixups, TwoJobsOfOneNameAtOneTimeAreNotPaired) {
  Tell({.job = 1, .ranks = {0}, .start_s = 0, .end_s = 100});
  Tell({.job = 2, .ranks = {1}, .start_s = 1, .end_s = 101});
  Tell({.job = 3, .ranks = {0}, .start_s = 2, .end_s = 100});
  Tell({.job = 4, .ranks = {1}, .start_s = 3, .end_s = 101});
  EXPECT_EQ(Listed(), (Rows{{Id(1)}, {Id(2)}, {Id(3)}, {Id(4)}}));
  lull::v1::ReportRequest request;
  request.set_job(Id(1));
  request.set_phase(lull::v1::PHASE_ALL);
  request.add_sections(lull::v1::SECTION_RANKS);
  lull::v1::ReportReply reply;
  const absl::Status status = query::Report(
      *store_, [](const std::string&) { return false; }, request, &reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("torchrun:456 went on at one time"));
}

// Its host is out of reach, or records nothing for the time being.
TEST_F(Mixups, APartThatARelayReportsGoesOn) {
  Tell({.job = 1, .ranks = {0}, .start_s = 0, .end_s = 5, .ended = false});
  Tell({.job = 2, .ranks = {1}, .start_s = 60, .end_s = 100});
  EXPECT_EQ(Listed(), (Rows{{Id(1)}, {Id(2)}}));
  reporting_ = {Id(1)};
  EXPECT_EQ(Listed(), (Rows{{Id(1), Id(2)}}));
}

// It took 11 s when each of them was looked at beside all others; now it takes 0.04.
TEST_F(Mixups, AListOfManyAttemptsTakesLittleTime) {
  ASSERT_TRUE(store_->writer().Begin().ok());
  in_one_ = true;
  constexpr uint32_t kAttempts = 500;
  for (uint32_t i = 0; i < kAttempts; ++i) {
    Tell({.job = 2 * i + 1, .ranks = {0}, .start_s = 10 * i, .end_s = 10 * i + 8});
    Tell({.job = 2 * i + 2, .ranks = {1}, .start_s = 10 * i, .end_s = 10 * i + 8});
  }
  ASSERT_TRUE(store_->writer().Commit().ok());
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(Listed().size(), kAttempts);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(4));
}

using query::Doubts;
using query::PartLife;
using query::Wholes;

std::vector<bool> DoubtsOf(const std::vector<PartLife>& parts) {
  return Doubts(parts, Wholes(parts));
}

TEST(Doubts, AreOfWhatCouldBePutTogetherOtherwise) {
  const PartLife a{100, 200, "u", {{0, 2}}}, b{110, 210, "u", {{1, 2}}};
  EXPECT_EQ(DoubtsOf({a, b}), (std::vector<bool>{false, false}));
  // Another one on two hosts, and one of which one host was recorded.
  EXPECT_EQ(DoubtsOf({a, b, a, b}), std::vector<bool>(4, true));
  EXPECT_EQ(DoubtsOf({a, b, a}), std::vector<bool>(3, true));
  // One that has all of its ranks, or is somebody else's.
  const PartLife whole{100, 200, "u", {{0, 2}, {1, 2}}};
  EXPECT_EQ(DoubtsOf({a, b, whole}), std::vector<bool>(3, false));
  const PartLife other_a{100, 200, "v", a.ranks}, other_b{110, 210, "v", b.ranks};
  EXPECT_EQ(DoubtsOf({a, b, other_a, other_b}), std::vector<bool>(4, false));
}

TEST(Doubts, AreNotOfAttemptsThatFollowEachOther) {
  const PartLife a{100, 200, "u", {{0, 2}}}, b{100, 210, "u", {{1, 2}}};
  const PartLife a2{205, 300, "u", {{0, 2}}}, b2{211, 300, "u", {{1, 2}}};
  EXPECT_EQ(Wholes({a, b, a2, b2}), (std::vector<size_t>{0, 0, 1, 1}));
  EXPECT_EQ(DoubtsOf({a, b, a2, b2}), std::vector<bool>(4, false));
}

}  // namespace
}  // namespace lull::test
