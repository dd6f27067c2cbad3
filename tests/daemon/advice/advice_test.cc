#include "daemon/advice/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/advice/thresholds.h"
#include "tests/cli/fixed_replies.h"
#include "tests/daemon/advice/findings.h"

namespace lull {
namespace {

using testing::FindingsOf;

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr uint64_t kWorkingNs = 100'000'000'000;
constexpr uint64_t kPercentNs = kWorkingNs / 100;

// One process that worked for kWorkingNs and met nothing.
v1::ReportReply QuietReport() {
  v1::ReportReply reply;
  v1::ProcessRow* row = reply.add_processes();
  row->set_gpu(true);
  row->set_duration_ns(kWorkingNs);
  return reply;
}

TEST(Advice, IsEmptyWithoutEvidence) {
  EXPECT_THAT(FindingsOf(QuietReport()), IsEmpty());
  EXPECT_THAT(FindingsOf({}), IsEmpty());
}

TEST(Advice, AsksForWorkersWhenDataWaitsExceedTheirShare) {
  v1::ReportReply reply = QuietReport();
  reply.mutable_processes(0)->set_data_wait_ns(5 * kPercentNs);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  reply.mutable_processes(0)->set_data_wait_ns(6 * kPercentNs);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].finding(), HasSubstr("6.00 %"));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("num_workers"));
}

TEST(Advice, NamesTheRankThatOthersWaitFor) {
  v1::ReportReply reply = QuietReport();
  *reply.mutable_ranks() = testing::FixedRanks().ranks();
  for (const bool much : {false, true}) {
    reply.mutable_ranks()->mutable_ranks(0)->mutable_culprits(0)->set_cost_ns(
        much ? 2 * kPercentNs : kPercentNs);
    reply.mutable_ranks()->mutable_ranks(0)->mutable_culprits(1)->set_cost_ns(0);
    ASSERT_THAT(FindingsOf(reply), SizeIs(much ? 1 : 0));
  }
  const v1::Finding late = FindingsOf(reply)[0];
  EXPECT_EQ(late.rule(), "late_rank");
  EXPECT_EQ(late.finding(),
            "rank 1 was late in 120 of 1,200 steps, by 50.0 ms on average, sleeping at "
            "ddp.py:8 augment; that cost the other rank 2.00 s");
  EXPECT_EQ(late.site().line(), 8);
}

TEST(Advice, NamesGcFreezeForFullCollectionsInTheStepsAlone) {
  v1::ReportReply reply = QuietReport();
  // Importing PyTorch alone takes five.
  v1::GcPause* pause = reply.mutable_gc()->add_gc_pauses();
  pause->set_generation(2);
  pause->set_count(5);
  pause->set_total_ns(10 * kPercentNs);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  reply.mutable_gc()->set_full_in_steps_ns(10 * kPercentNs);
  reply.mutable_gc()->set_full_in_steps_count(kOftenCollected - 1);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  reply.mutable_gc()->set_full_in_steps_count(kOftenCollected);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("gc.freeze()"));
}

TEST(Advice, SeesDeviceMemoryInALoopButNotInSetUp) {
  v1::ReportReply reply = QuietReport();
  v1::AllocationSite* site = reply.mutable_allocations()->add_allocation_sites();
  site->set_allocator("cuda");
  site->set_blocked_ns(10 * kPercentNs);
  site->set_calls(kLoopCalls - 1);
  EXPECT_THAT(FindingsOf(reply), IsEmpty());
  site->set_calls(kLoopCalls);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("before the loop"));
}

TEST(Advice, TellsPageableCopiesFromOtherSyncs) {
  v1::ReportReply reply = QuietReport();
  v1::SyncPoint* point = reply.mutable_syncs()->add_sync_points();
  point->set_api("cudaMemcpyAsync");
  point->set_calls(100);
  point->set_blocked_ns(10 * kPercentNs);
  point->set_bytes(100 << 20);
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr("pin_memory"));
  point->set_api("cudaStreamSynchronize");
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr(".item()"));
}

TEST(Advice, DoesNotPinWhatOnlyReadsAValueBack) {
  v1::ReportReply reply = QuietReport();
  v1::SyncPoint* point = reply.mutable_syncs()->add_sync_points();
  point->set_api("cudaMemcpyAsync");
  point->set_calls(100);
  point->set_blocked_ns(10 * kPercentNs);
  point->set_bytes(100 * sizeof(float));
  ASSERT_THAT(FindingsOf(reply), SizeIs(1));
  EXPECT_THAT(FindingsOf(reply)[0].advice(), HasSubstr(".item()"));
}

TEST(Advice, TakesSharesOfTheProcessesThatWorked) {
  v1::ReportReply reply = testing::FixedReport();
  v1::Shares shares = SharesOf(reply);
  EXPECT_EQ(shares.working_processes(), 2u);  // not the launcher
  EXPECT_EQ(shares.working_ns(), 120'000'000'000u);
}

TEST(Advice, PutsTheCostliestFirst) {
  std::vector<v1::Finding> advice = FindingsOf(testing::FixedReport());
  ASSERT_GE(advice.size(), 3u);
  for (size_t i = 1; i < advice.size(); ++i) {
    EXPECT_GE(advice[i - 1].time_ns(), advice[i].time_ns());
  }
  EXPECT_THAT(advice[0].finding(), HasSubstr("train.py:37 main"));
}

}  // namespace
}  // namespace lull
