// Keeper, worker and upstream together: a collector that is late, breaks, refuses,
// and a spool that is full or left over.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <filesystem>
#include <random>

#include "daemon/relay/deliver/deliver.h"
#include "daemon/relay/deliver/spool.h"
#include "tests/daemon/relay/relay_fixture.h"

namespace lull::relay {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(RelayTest, KeepsEverythingForACollectorThatComesLate) {
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 3000);
  EndTarget(target);
  ASSERT_TRUE(PollUntil([&] {
    return keeper_->status().events_read == 3000 && !keeper_->status().upstream.ok();
  }));
  EXPECT_EQ(collector_->collected().batches, 0u);
  EXPECT_EQ(keeper_->status().upstream.code(), absl::StatusCode::kUnavailable);
  collector_->Start();
  absl::Time before = absl::Now();
  ASSERT_EQ(Finish(), absl::OkStatus());
  EXPECT_LT(absl::Now() - before, absl::Seconds(4));
  ExpectExactly(collector_->collected(), 1, 0, 3000);
}

TEST_F(RelayTest, SendsAgainWhatWasNotAcknowledgedWhenTheStreamBreaks) {
  collector_->BreakAfter(2);
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  for (uint64_t i = 0; i < 12; ++i) {
    CommitMany(&segment, 0, i * 100, 100);
    absl::Time until = absl::Now() + absl::Milliseconds(120);
    PollUntil([&] { return absl::Now() > until; });
  }
  EndTarget(target);
  keeper_->JobEnded(0);
  PollUntil([&] { return collector_->collected().streams > 4; });
  collector_->BreakAfter(0);
  ASSERT_EQ(keeper_->WaitUntilDelivered(absl::Seconds(20)), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_GT(got.batches, got.last_sequence) << "some came twice";
  ExpectExactly(got, 1, 0, 1200);
}

TEST_F(RelayTest, SurvivesACollectorThatIsRestarted) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  for (uint64_t i = 0; i < 5; ++i) {
    CommitMany(&segment, 0, i * 500, 500);
    absl::Time until = absl::Now() + absl::Milliseconds(150);
    PollUntil([&] { return absl::Now() > until; });
    collector_->Stop();
    collector_->Start();
  }
  EndTarget(target);
  ASSERT_EQ(Finish(), absl::OkStatus());
  ExpectExactly(collector_->collected(), 1, 0, 2500);
}

TEST_F(RelayTest, SaysAtOnceThatTheTokenIsWrongAndKeepsTheSpool) {
  collector_->RequireToken("right");
  collector_->Start();
  RelayOptions options = Options();
  options.collector.token = "wrong";
  StartKeeper(options);
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 10);
  EndTarget(target);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().events_read == 10; }));
  absl::Time before = absl::Now();
  absl::Status status = Finish(absl::Seconds(30));
  EXPECT_LT(absl::Now() - before, absl::Seconds(5));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("wrong token"), HasSubstr(options.spool_directory)));
  keeper_.reset();
  ASSERT_THAT(FindLeftoverSpools(root_ + "/spool"),
              ::testing::ElementsAre(options.spool_directory));

  DeliverOptions deliver;
  deliver.collector.target = options.collector.target;
  deliver.collector.token = "wrong";
  EXPECT_EQ(DeliverSpool(options.spool_directory, deliver).code(),
            absl::StatusCode::kUnauthenticated);
  deliver.collector.token = "right";
  ASSERT_EQ(DeliverSpool(options.spool_directory, deliver), absl::OkStatus());
  Collected got = collector_->collected();
  ExpectExactly(got, 1, 0, 10);
  EXPECT_TRUE(got.job_end.has_value());
  EXPECT_THAT(FindLeftoverSpools(root_ + "/spool"), IsEmpty());
}

TEST_F(RelayTest, MakesItsSocketAnewWhenItsFolderIsRemoved) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment before;
  FakeSegment after;
  pid_t first = StartTarget(&before);
  ASSERT_TRUE(RemoveTree(root_ + "/run").ok());
  ASSERT_TRUE(
      PollUntil([&] { return access((root_ + "/run/relay").c_str(), F_OK) == 0; }));
  pid_t second = StartTarget(&after);
  CommitMany(&before, 0, 0, 10);
  CommitMany(&after, 0, 0, 10);
  kill(keeper_->worker_pid(), SIGKILL);  // the next one knows of the new socket, too
  EndTarget(first);
  EndTarget(second);
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  ExpectExactly(got, 1, 0, 10);
  ExpectExactly(got, 2, 0, 10);
  EXPECT_GT(got.job_end->unreachable_ns(), 0u);
  EXPECT_LT(got.job_end->unreachable_ns(), 30'000'000'000u);
  EXPECT_FALSE(got.job_end->cut_off());
  EXPECT_FALSE(std::filesystem::exists(root_ + "/run/relay"));
}

// A short job ended before the next of its looks, one a second, and nothing was said.
TEST_F(RelayTest, NoticesAtTheEndThatItsFolderWasRemovedAMomentAgo) {
  collector_->Start();
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 10);
  EndTarget(target);
  ASSERT_TRUE(RemoveTree(root_ + "/run").ok());
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  ExpectExactly(got, 1, 0, 10);
  EXPECT_GT(got.job_end->unreachable_ns(), 0u);
}

TEST_F(RelayTest, GoesOnWhenItsSpoolIsRemoved) {
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 10);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().batches_spooled > 0; }));
  // The worker may be writing a snapshot of mappings into it at that moment.
  bool removed = false;
  for (int i = 0; i < 1000 && !removed; ++i)
    removed = RemoveTree(root_ + "/spool").ok();
  ASSERT_TRUE(removed);
  CommitMany(&segment, 0, 10, 10);
  EndTarget(target);
  collector_->Start();
  ASSERT_EQ(Finish(), absl::OkStatus());
  ExpectExactly(collector_->collected(), 1, 0, 20);
}

TEST_F(RelayTest, TheOldestLeftoversGoWhenTheyAreTooMany) {
  for (int i = 0; i < 3; ++i) {
    std::string directory = root_ + "/spool/job" + std::to_string(i);
    auto spool = Spool::Open(directory, 16u << 20);
    ASSERT_TRUE(spool.ok());
    lull::v1::Hello hello;
    hello.mutable_job()->set_id(directory);
    ASSERT_TRUE((*spool)->WriteHello(hello).ok());
    lull::v1::Batch batch;
    batch.add_processes()->set_command(std::string(100'000, 'x'));
    ASSERT_TRUE((*spool)->Append(&batch).ok());
    absl::SleepFor(absl::Milliseconds(20));  // file times
  }
  TidySpools(root_ + "/spool");
  EXPECT_EQ(FindLeftoverSpools(root_ + "/spool").size(), 3u);
  TidySpools(root_ + "/spool", 250'000);
  EXPECT_THAT(FindLeftoverSpools(root_ + "/spool"),
              ::testing::ElementsAre(root_ + "/spool/job1", root_ + "/spool/job2"));
}

TEST_F(RelayTest, ASpoolIsNoLeftoverBetweenTwoWorkers) {
  StartKeeper(Options());
  FakeSegment segment;
  StartTarget(&segment);
  CommitMany(&segment, 0, 0, 10);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().batches_spooled > 0; }));
  kill(keeper_->worker_pid(), SIGKILL);
  absl::SleepFor(absl::Milliseconds(50));  // nobody polls the keeper: no new worker
  EXPECT_THAT(FindLeftoverSpools(root_ + "/spool"), IsEmpty());
  DeliverOptions deliver;
  deliver.collector.target = Options().collector.target;
  EXPECT_EQ(DeliverSpool(Options().spool_directory, deliver).code(),
            absl::StatusCode::kUnavailable);
}

TEST_F(RelayTest, ALeftoverOfARelayThatDiedIsEndedInItsName) {
  StartKeeper(Options());
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  CommitMany(&segment, 0, 0, 10);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().batches_spooled > 0; }));
  DeliverOptions deliver;
  deliver.collector.target = Options().collector.target;
  EXPECT_EQ(DeliverSpool(Options().spool_directory, deliver).code(),
            absl::StatusCode::kUnavailable)
      << "its relay is alive";
  EXPECT_THAT(FindLeftoverSpools(root_ + "/spool"), IsEmpty());
  keeper_->Abandon();
  EndTarget(target);  // a fork of this process, with the keeper's lock
  collector_->Start();
  ASSERT_EQ(DeliverSpool(Options().spool_directory, deliver), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_TRUE(got.job_end->cut_off());
  ExpectExactly(got, 1, 0, 10);
  ASSERT_TRUE(got.job_end.has_value());
  EXPECT_FALSE(got.job_end->known());
  EXPECT_GT(got.job_end->end_ns(), Options().job.start_ns() - 60'000'000'000);
}

TEST_F(RelayTest, CountsWhatAFullSpoolCouldNotTakeAndNeverHoldsTheRingUp) {
  RelayOptions options = Options();
  options.spool_limit_bytes = kMinSpoolBytes;
  StartKeeper(options);
  FakeSegment segment;
  pid_t target = StartTarget(&segment);
  std::mt19937_64 random(7);
  uint64_t committed = 0;
  uint64_t full = 0;
  // 48 bytes that do not shrink as varints: 4 MiB are full after 70 000 of them. Half
  // of the times cannot be: such slots are dropped one by one.
  PollUntil([&] {
    for (int i = 0; i < 2000; ++i) {
      abi::Event event = MakeEvent(abi::EventType::kLaunch, committed, random());
      event.arg1 = random();
      event.duration_ns = random();
      committed += segment.Commit(0, event) ? 1 : 0;
    }
    absl::SleepFor(absl::Milliseconds(2));
    full = segment.view().ring(0).lost.load();
    return committed > 200'000;
  });
  ASSERT_GT(committed, 200'000u);
  ASSERT_TRUE(PollUntil([&] { return keeper_->status().events_lost > 0; }));
  kill(keeper_->worker_pid(), SIGKILL);  // the count must outlive the worker
  EndTarget(target);
  absl::Time until = absl::Now() + absl::Milliseconds(300);
  PollUntil([&] { return absl::Now() > until; });
  collector_->Start();
  ASSERT_EQ(Finish(), absl::OkStatus());
  Collected got = collector_->collected();
  EXPECT_THAT(got.violations, IsEmpty());
  ASSERT_EQ(got.counters[1].rings_size(), 1);
  const auto& counters = got.counters[1].rings(0);
  uint64_t stored = got.rings[{1, 0}].values.size();
  EXPECT_GT(stored, 10'000u);
  EXPECT_GT(counters.lost_relay(), 10'000u);
  EXPECT_EQ(counters.committed(), committed);
  EXPECT_EQ(counters.lost_full(), full);
  EXPECT_EQ(stored + counters.lost_relay(), committed) << "each is stored or counted";
}

}  // namespace
}  // namespace lull::relay
