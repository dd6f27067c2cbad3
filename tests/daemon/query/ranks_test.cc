// `lull ranks` of jobs as relays tell them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr auto kARecordedWait = static_cast<uint32_t>(aggregate::EventType::kHostWait);
constexpr uint32_t kCollective = 20;  // a native stack

// Two ranks that wait for each other; process keys are 1 and 2.
class RanksOfAJob : public testing::Test {
 protected:
  explicit RanksOfAJob(lull::v1::Hello hello = MakeHello(MakeJobId(1)))
      : job_(std::move(hello)) {}

  void Tell(int32_t other_rank = 1, int32_t world_size = 2) {
    lull::v1::Batch batch;
    batch.set_sequence(1);
    for (uint64_t key : {1, 2}) {
      lull::v1::ProcessInfo* process = batch.add_processes();
      *process =
          MakeProcess(key, 100 + static_cast<uint32_t>(key), key == 1 ? 0 : other_rank);
      process->set_world_size(world_size);
      AddStacks(batch, key);
      lull::v1::StackDef* stack = batch.mutable_stacks()->rbegin()->add_stacks();
      stack->set_ref(kCollective);
      stack->set_native(true);
      stack->add_frames()->set_function("c10d::Reducer::finalize_backward()");
      AddRun(batch, key, 0, 0, events_[key - 1]);
      AddCounters(batch, key, 0, events_[key - 1].size(), now_ns_);
      batch.mutable_counters()->rbegin()->set_thinning(thinning_);
    }
    if (has_sampled_helper_) {
      *batch.add_processes() = MakeProcess(3, 103, -1);
      AddCounters(batch, 3, 0, 0, now_ns_);
      batch.mutable_counters()->rbegin()->set_thinning(lull::v1::THINNING_STEPS);
    }
    job_.Apply(batch);
    job_.Commit();
  }

  // Rank `late` comes `by_ns` later than the other; the stack of the other's wait may
  // be missing.
  void Collective(size_t late, uint64_t by_ns, uint64_t transfer_ns = kMs,
                  bool with_stack = true) {
    for (size_t rank = 0; rank < 2; ++rank) {
      TestEvent wait;
      wait.type = kARecordedWait;
      wait.api = kApiTimedWait;
      wait.python = 1;
      wait.native = rank == late || with_stack ? kCollective : 0;
      wait.start_ns = now_ns_ + (rank == late ? by_ns : 0);
      wait.duration_ns = now_ns_ + by_ns + transfer_ns - wait.start_ns;
      events_[rank].push_back(wait);
    }
    now_ns_ += by_ns + transfer_ns + 10 * kMs;
  }

  // Before the next collective.
  void Poll(size_t rank, uint64_t ns) {
    TestEvent poll;
    poll.type = kARecordedWait;
    poll.api = kApiPoll;
    poll.python = 2;
    poll.start_ns = now_ns_;
    poll.duration_ns = ns;
    events_[rank].push_back(poll);
  }

  lull::v1::ReportReply Ask(bool overview = false) {
    lull::v1::ReportRequest request;
    request.set_phase(lull::v1::PHASE_ALL);
    if (!overview) request.add_sections(lull::v1::SECTION_RANKS);
    return job_.Report(request);
  }

  std::string Refusal() {
    lull::v1::ReportRequest request;
    request.add_sections(lull::v1::SECTION_RANKS);
    lull::v1::ReportReply reply;
    return std::string(
        query::Report(
            job_.store(), [](const std::string&) { return true; }, request, &reply)
            .message());
  }

  Pipeline job_;
  std::vector<TestEvent> events_[2];
  uint64_t now_ns_ = kJobStartNs + kSecond;
  lull::v1::Thinning thinning_ = lull::v1::THINNING_LAUNCHES;
  bool has_sampled_helper_ = false;  // a process that is no rank
};

TEST_F(RanksOfAJob, NamesTheLateOne) {
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 9) Poll(1, 50 * kMs);
    Collective(1, i % 10 == 9 ? 50 * kMs : 0);
  }
  Tell();
  const lull::v1::Ranks ranks = Ask().ranks();
  ASSERT_EQ(ranks.ranks_size(), 2);
  EXPECT_EQ(ranks.ranks(0).rank(), 1);
  ASSERT_EQ(ranks.ranks(0).culprits_size(), 1);
  EXPECT_EQ(ranks.ranks(0).culprits(0).cause(), "io");
  EXPECT_EQ(ranks.ranks(0).cost_to_others_ns(), 10 * 50 * kMs);
  EXPECT_FALSE(ranks.cut());
}

// Rank 0 is late, and the overhead budget took the stack of rank 1's wait away.
TEST_F(RanksOfAJob, AccuseNobodyOfALockThatMayBeTheCollective) {
  for (int i = 0; i < 100; ++i) {
    const bool late = i % 10 == 9;
    Collective(0, late ? 50 * kMs : 0, late ? 10 * kMs : kMs, !late);
  }
  Tell();
  const lull::v1::Ranks ranks = Ask().ranks();
  ASSERT_EQ(ranks.ranks_size(), 2);
  for (const lull::v1::RankRow& row : ranks.ranks()) {
    EXPECT_EQ(row.culprits_size(), 0) << row.ShortDebugString();
    EXPECT_EQ(row.waited_ns(), 0u);
  }
  EXPECT_EQ(ranks.unmatched_ns(), 10 * 10 * kMs);
}

TEST_F(RanksOfAJob, AreRefusedWhereTheLauncherNamesOthers) {
  Collective(1, kMs);
  Tell(/*other_rank=*/5);
  EXPECT_EQ(Refusal(), "rank 5 is none of 2 ranks (WORLD_SIZE)");
}

TEST_F(RanksOfAJob, AreComparedWhereStepsOfAnotherProcessAreSampled) {
  for (int i = 0; i < 20; ++i) Collective(1, 50 * kMs);
  has_sampled_helper_ = true;
  Tell();
  EXPECT_EQ(Ask().ranks().ranks_size(), 2);
  EXPECT_TRUE(Ask(/*overview=*/true).job().steps_sampled());
}

TEST_F(RanksOfAJob, AreNotComparedOnceStepsHaveToBeSampled) {
  for (int i = 0; i < 20; ++i) Collective(1, 50 * kMs);
  thinning_ = lull::v1::THINNING_STEPS;
  Tell();
  EXPECT_THAT(Refusal(), testing::StartsWith("its steps were sampled, by each rank"));
  EXPECT_TRUE(Ask(/*overview=*/true).job().steps_sampled());
}

lull::v1::Hello WithSampledSteps() {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->mutable_settings()->set_sample_steps(true);
  return hello;
}

class RanksOfASampledJob : public RanksOfAJob {
 protected:
  RanksOfASampledJob() : RanksOfAJob(WithSampledSteps()) {}
};

TEST_F(RanksOfASampledJob, AreNotComparedByWhatHostsWaitedFor) {
  for (int i = 0; i < 20; ++i) Collective(1, 50 * kMs);
  Tell();
  EXPECT_THAT(Refusal(), testing::StartsWith("its steps were sampled, by each rank"));
  EXPECT_EQ(Ask(/*overview=*/true).ranks().ranks_size(), 0);
  EXPECT_TRUE(Ask(/*overview=*/true).job().steps_sampled());
}

TEST_F(RanksOfAJob, AreRefusedBeforeTheirNumberCostsTime) {
  Collective(1, kMs);
  Tell(1, 100'000);
  EXPECT_EQ(Refusal(),
            "lull compares 1024 ranks at most, and these are 100000 (WORLD_SIZE)");
}

// A job that slept for hours has all its events at the end.
TEST_F(RanksOfAJob, AreReadNoFurtherThanTheEventsOfAnAnswerGo) {
  Collective(1, kMs);
  now_ns_ += 36'000 * kSecond;
  const uint64_t awake_ns = now_ns_;
  for (int i = 0; i < 300'000; ++i) {
    Poll(0, 100 * kUs);
    now_ns_ += kMs;
  }
  for (int i = 0; i < 100'000; ++i) {
    Poll(1, 100 * kUs);
    Poll(1, 100 * kUs);
    Poll(1, 100 * kUs);
    now_ns_ += kMs;
  }
  Tell();
  const lull::v1::Ranks ranks = Ask(/*overview=*/true).ranks();
  EXPECT_TRUE(ranks.cut());
  const uint64_t since_ns = kJobStartNs + ranks.start_ns();
  // Of 600 000 events the last 500 000: 300 000 are rank 1's, and come last.
  EXPECT_NEAR(static_cast<double>(since_ns - awake_ns), 100e9, 9e9);
}

}  // namespace
}  // namespace lull::test
