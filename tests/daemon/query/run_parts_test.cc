// Jobs of several relays that are parts of one.
#include "daemon/query/run_parts.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "daemon/collector/ingest/job_state.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/storage/temporary_directory.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

using query::PartLife;
using query::Wholes;
using std::vector;

TEST(Wholes, AreWhatLivedAtOnceWithoutARankTwice) {
  const PartLife a{100, 200, "u", {{0, 4}, {1, 4}}};
  const PartLife b{110, 210, "u", {{2, 4}, {3, 4}}};
  EXPECT_EQ(Wholes({a, b}), (vector<size_t>{0, 0}));
  // Another attempt, with the same name.
  const PartLife later_a{300, 400, "u", a.ranks}, later_b{310, 390, "u", b.ranks};
  EXPECT_EQ(Wholes({a, b, later_a, later_b}), (vector<size_t>{0, 0, 1, 1}));
  // Another job at the same time.
  const PartLife other{120, 220, "u", a.ranks};
  EXPECT_EQ(Wholes({a, b, other}), (vector<size_t>{0, 0, 1}));
  const PartLife of_somebody_else{120, 220, "v", b.ranks};
  EXPECT_EQ(Wholes({a, of_somebody_else}), (vector<size_t>{0, 1}));
  const PartLife larger{120, 220, "u", {{2, 8}, {3, 8}}};
  EXPECT_EQ(Wholes({a, larger}), (vector<size_t>{0, 1}));
}

TEST(Wholes, HaveRanks) {
  const PartLife a{100, 200, "u", {{0, 2}}}, none{100, 200, "u", {}};
  EXPECT_EQ(Wholes({a, none, none}), (vector<size_t>{0, 1, 2}));
}

// Pods of one name in two namespaces, of each of which one is recorded.
TEST(Wholes, OfARunThatNobodyNamedHaveAllRanks) {
  const PartLife a{100, 200, "u", {{0, 4}, {1, 4}}}, b{110, 210, "u", {{2, 4}}},
      c{110, 210, "u", {{3, 4}}};
  EXPECT_EQ(Wholes({a, b, c}, true), (vector<size_t>{0, 0, 0}));
  EXPECT_EQ(Wholes({a, b}, true), (vector<size_t>{0, 1}));
  EXPECT_EQ(Wholes({a, b}), (vector<size_t>{0, 0}));
  const PartLife later{300, 400, "u", {{0, 4}, {1, 4}, {2, 4}, {3, 4}}};
  const PartLife none{300, 400, "u", {}};
  EXPECT_EQ(Wholes({a, b, later, none}, true), (vector<size_t>{0, 1, 2, 3}));
}

// Of a host that died in the first attempt nobody saw the end.
TEST(Wholes, DoNotMixAttemptsWhereAnEndWasNotSeen) {
  const PartLife a{100, UINT64_MAX, "u", {{0, 2}}}, b{100, 200, "u", {{1, 2}}};
  const PartLife again_a{300, 400, "u", {{0, 2}}}, again_b{301, 400, "u", {{1, 2}}};
  EXPECT_EQ(Wholes({a, b, again_a, again_b}), (vector<size_t>{0, 0, 1, 1}));
}

constexpr auto kARecordedWait = static_cast<uint32_t>(aggregate::EventType::kHostWait);
constexpr uint32_t kCollective = 20;  // a native stack

// A host whose clock shows `ahead_ns` more than that of the collector.
struct Host {
  std::string name;
  int64_t ahead_ns = 0;
  std::string boot_id;
};

// Two hosts with one rank each. Times are given by the collector's clock, at which
// kJobStartNs is the start of both.
class TwoHosts : public testing::Test {
 protected:
  void SetUp() override {
    auto store = storage::Store::Open(directory_ / "a.db");
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  uint64_t On(const Host& host, uint64_t time_ns) const {
    return time_ns + static_cast<uint64_t>(host.ahead_ns);
  }

  void Collective(size_t late, uint64_t by_ns) {
    for (size_t rank = 0; rank < 2; ++rank) {
      TestEvent wait;
      wait.type = kARecordedWait;
      wait.api = kApiTimedWait;
      wait.python = 1;
      wait.native = kCollective;
      wait.start_ns = now_ns_ + (rank == late ? by_ns : 0);
      wait.duration_ns = now_ns_ + by_ns + kMs - wait.start_ns;
      events_[rank].push_back(wait);
    }
    now_ns_ += by_ns + kMs + 10 * kMs;
  }

  void Poll(size_t rank, uint64_t ns) {
    TestEvent poll;
    poll.type = kARecordedWait;
    poll.api = kApiPoll;
    poll.python = 2;
    poll.start_ns = now_ns_;
    poll.duration_ns = ns;
    events_[rank].push_back(poll);
  }

  void HundredSteps() {
    Poll(1, kMs);  // so that the same lines have other numbers there
    now_ns_ += 10 * kMs;
    for (int i = 0; i < 100; ++i) {
      if (i % 10 == 9) Poll(1, 50 * kMs);
      Collective(1, i % 10 == 9 ? 50 * kMs : 0);
    }
  }

  // What the relay of rank `rank` tells. `error_ns`: of its readings of clocks; 0:
  // none.
  void Tell(size_t rank, const Host& host, uint64_t error_ns,
            const std::string& run_id = "torchrun:llama", uint64_t skew_ns = 0) {
    lull::v1::Hello hello = MakeHello(MakeJobId(static_cast<uint32_t>(rank) + 1));
    hello.mutable_job()->set_host(host.name);
    hello.mutable_job()->set_boot_id(host.boot_id);
    hello.mutable_job()->set_start_ns(On(host, kJobStartNs));
    lull::v1::Batch batch;
    batch.set_sequence(1);
    lull::v1::ProcessInfo* process = batch.add_processes();
    *process =
        MakeProcess(1, 100 + static_cast<uint32_t>(rank), static_cast<int32_t>(rank));
    process->set_world_size(2);
    process->set_run_id(run_id);
    AddStacks(batch, 1);
    lull::v1::StackDef* stack = batch.mutable_stacks()->rbegin()->add_stacks();
    stack->set_ref(kCollective);
    stack->set_native(true);
    stack->add_frames()->set_function("c10d::Reducer::finalize_backward()");
    std::vector<TestEvent> events = events_[rank];
    for (TestEvent& event : events) event.start_ns = On(host, event.start_ns);
    AddRun(batch, 1, 0, 0, events);
    AddCounters(batch, 1, 0, events.size(), On(host, now_ns_));
    auto job = collector::JobState::Load(store_->writer(), hello);
    ASSERT_TRUE(job.ok()) << job.status();
    (*job)->Apply(hello);
    ASSERT_TRUE((*job)->Apply(batch).empty());
    for (uint64_t at = kJobStartNs; error_ns > 0 && at < now_ns_ + 10 * kSecond;
         at += kSecond) {
      lull::v1::ClockReading reading;
      reading.set_at_ns(On(host, at));
      reading.set_low_ns(-host.ahead_ns - static_cast<int64_t>(error_ns + skew_ns));
      reading.set_high_ns(-host.ahead_ns + static_cast<int64_t>(error_ns - skew_ns));
      reading.set_boot_id("collector");
      (*job)->Apply(reading);
    }
    storage::StoreWriter& writer = store_->writer();
    ASSERT_TRUE(writer.Begin().ok());
    ASSERT_TRUE((*job)->Flush(writer, 1).ok());
    ASSERT_TRUE(writer.Commit().ok());
  }

  absl::Status Ask(lull::v1::ReportReply* reply, uint32_t job = 1, int rank = -1) {
    lull::v1::ReportRequest request;
    request.set_job(MakeJobId(job));
    request.set_phase(lull::v1::PHASE_ALL);
    if (rank >= 0) request.set_rank(rank);
    request.add_sections(lull::v1::SECTION_RANKS);
    return query::Report(
        *store_, [](const std::string&) { return true; }, request, reply);
  }

  void ExpectTheLateOne(uint32_t job, uint64_t most_error_ns) {
    lull::v1::ReportReply reply;
    absl::Status status = Ask(&reply, job);
    ASSERT_TRUE(status.ok()) << status;
    const lull::v1::Ranks& ranks = reply.ranks();
    EXPECT_EQ(ranks.collectives(), 100u);
    EXPECT_EQ(ranks.error_kind(), lull::v1::CLOCK_ERROR_KIND_BOUND);
    EXPECT_LE(ranks.error_ns(), most_error_ns);
    ASSERT_EQ(ranks.ranks_size(), 2);
    EXPECT_EQ(ranks.ranks(0).rank(), 1);
    EXPECT_EQ(ranks.ranks(0).host(), "far");
    EXPECT_EQ(ranks.ranks(1).host(), "near");
    ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
    EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "io");
    EXPECT_EQ(ranks.ranks(0).culprits(0).site().file(), "/home/u/train.py");
    EXPECT_EQ(ranks.ranks(0).culprits(0).site().line(), 12);
    EXPECT_NEAR(static_cast<double>(ranks.ranks(0).cost_to_others_ns()), 500e6, 5e6);
    EXPECT_TRUE(ranks.ranks(1).culprits().empty());
    ASSERT_EQ(reply.job().parts_size(), 2);
    EXPECT_EQ(reply.job().parts(0).host(), "near");
    EXPECT_EQ(reply.job().parts(1).id(), MakeJobId(2));
  }

  TemporaryDirectory directory_;
  std::unique_ptr<storage::Store> store_;
  std::vector<TestEvent> events_[2];
  uint64_t now_ns_ = kJobStartNs + kSecond;
  const Host near_{"near", 0, "collector"};
  const Host far_{"far", 86'400 * static_cast<int64_t>(kSecond), "far"};
};

TEST_F(TwoHosts, AreOneJobWithClocksADayApart) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, far_, 40'000);
  ExpectTheLateOne(1, 600'000);
  ExpectTheLateOne(2, 600'000);
}

TEST_F(TwoHosts, MayBothBeOtherThanTheCollectorsHost) {
  HundredSteps();
  Tell(0, Host{"near", -300 * static_cast<int64_t>(kSecond), "near"}, 30'000);
  Tell(1, far_, 40'000);
  ExpectTheLateOne(2, 1'100'000);
}

TEST_F(TwoHosts, OfOneClockNeedNoReading) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, Host{"far", 0, near_.boot_id}, 0);
  ExpectTheLateOne(1, 0);
}

// The truth is inside the bound, near its edge: all the time rank 1 seems to be late by
// 55 ms, or by 105.
TEST_F(TwoHosts, AccuseNobodyWithinTheErrorOfTheirClocks) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, far_, 110 * kMs, "torchrun:llama", 55 * kMs);
  lull::v1::ReportReply reply;
  ASSERT_TRUE(Ask(&reply).ok());
  EXPECT_GE(reply.ranks().error_ns(), 110 * kMs);
  for (const lull::v1::RankRow& row : reply.ranks().ranks()) {
    EXPECT_TRUE(row.culprits().empty()) << row.ShortDebugString();
  }
}

TEST_F(TwoHosts, AreNotComparedWhereNobodyReadTheirClocks) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, far_, 0);
  lull::v1::ReportReply reply;
  const absl::Status status = Ask(&reply);
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("the clock of"), std::string::npos) << status;
}

TEST_F(TwoHosts, AreTwoJobsIfTheirRunsHaveOtherNames) {
  HundredSteps();
  Tell(0, near_, 0, "torchrun:a");
  Tell(1, far_, 40'000, "torchrun:b");
  lull::v1::ReportReply reply;
  const absl::Status status = Ask(&reply);
  EXPECT_NE(status.message().find("1 of 2 ranks waited"), std::string::npos) << status;
}

// As an older relay tells it.
TEST_F(TwoHosts, AreTwoJobsIfTheirRunsHaveNone) {
  HundredSteps();
  Tell(0, near_, 0, "");
  Tell(1, far_, 0, "");
  lull::v1::ReportReply reply;
  EXPECT_NE(Ask(&reply).message().find("1 of 2 ranks waited"), std::string::npos);
  lull::v1::ListJobsReply jobs;
  ASSERT_TRUE(query::ListJobs(
                  *store_, [](const std::string&) { return true; }, {}, &jobs)
                  .ok());
  EXPECT_EQ(jobs.jobs_size(), 2);
}

TEST_F(TwoHosts, AreOneRowInTheListOfJobs) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, far_, 40'000);
  lull::v1::ListJobsRequest request;
  request.set_limit(1);
  lull::v1::ListJobsReply jobs;
  ASSERT_TRUE(query::ListJobs(
                  *store_, [](const std::string&) { return true; }, request, &jobs)
                  .ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).id(), MakeJobId(1));
  EXPECT_EQ(jobs.jobs(0).parts_size(), 2);
}

TEST_F(TwoHosts, AreAskedByRank) {
  HundredSteps();
  Tell(0, near_, 0);
  Tell(1, far_, 40'000);
  lull::v1::ReportReply reply;
  absl::Status status = Ask(&reply, 1, /*rank=*/1);
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(reply.job().id(), MakeJobId(2));
  ASSERT_EQ(reply.ranks().ranks_size(), 1);
  EXPECT_EQ(reply.ranks().ranks(0).rank(), 1);
}

}  // namespace
}  // namespace lull::test
