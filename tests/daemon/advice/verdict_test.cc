#include "daemon/advice/verdict.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <utility>

#include "daemon/advice/advice.h"
#include "query.pb.h"

namespace lull {
namespace {

// Of 1000 ns, all idle but `busy`.
TimeShares Shares(uint64_t busy,
                  std::initializer_list<std::pair<v1::GapCause, uint64_t>> idle) {
  TimeShares shares;
  shares.traced_ns = 1000;
  shares.busy_ns = shares.kernel_ns = busy;
  for (const auto& [cause, ns] : idle) shares.idle_ns[static_cast<size_t>(cause)] = ns;
  return shares;
}

TEST(Verdict, IsTheLargestCauseThatTheHostCanChange) {
  EXPECT_EQ(
      Verdict(Shares(700, {{v1::GAP_CAUSE_SYNC, 120}, {v1::GAP_CAUSE_DATA_WAIT, 100}})),
      "sync");
  EXPECT_EQ(Verdict(Shares(700, {{v1::GAP_CAUSE_SYNC, 100},
                                 {v1::GAP_CAUSE_GC, 60},
                                 {v1::GAP_CAUSE_HOST_CODE, 60}})),
            "host");
}

// 72.7 % busy; of the idle rest 29.0 % are syncs, 23.7 % the latency of launches.
TEST(Verdict, DoesNotCountWhatWasLaunchedInTimeAsLaunchBound) {
  EXPECT_EQ(Verdict(Shares(727, {{v1::GAP_CAUSE_SYNC, 79},
                                 {v1::GAP_CAUSE_LAUNCH_LATENCY, 65},
                                 {v1::GAP_CAUSE_LAUNCH_BOUND, 50}})),
            "sync");
}

TEST(Verdict, IsLaunchWhereLatencyIsAllThatThereIs) {
  EXPECT_EQ(Verdict(Shares(700, {{v1::GAP_CAUSE_LAUNCH_LATENCY, 290}})), "launch");
}

TEST(Verdict, IsComputeFromNinetyPercentOn) {
  EXPECT_EQ(Verdict(Shares(900, {{v1::GAP_CAUSE_SYNC, 100}})), "compute");
  EXPECT_EQ(Verdict(Shares(899, {{v1::GAP_CAUSE_SYNC, 101}})), "sync");
}

TEST(Verdict, DoesNotCountCopiesAsComputing) {
  TimeShares shares = Shares(950, {{v1::GAP_CAUSE_SYNC, 50}});
  shares.kernel_ns = 300;
  EXPECT_EQ(Verdict(shares), "copy");
  shares.kernel_ns = 920;
  EXPECT_EQ(Verdict(shares), "compute");
}

TEST(Verdict, CountsWhatALaunchTakesAsTheHosts) {
  EXPECT_EQ(Verdict(Shares(300, {{v1::GAP_CAUSE_LAUNCH_CALL, 600},
                                 {v1::GAP_CAUSE_LAUNCH_BOUND, 100}})),
            "host");
}

TEST(Verdict, IsNothingWhereNothingWasTracedOrNothingStandsOut) {
  EXPECT_EQ(Verdict({}), "");
  EXPECT_EQ(Verdict(Shares(100, {{v1::GAP_CAUSE_UNKNOWN, 900}})), "");
}

// What the verdict names comes first, also where another change wins more at one line.
TEST(Verdict, AgreesWithTheFirstFinding) {
  v1::ReportReply report;
  report.mutable_gpu()->set_traced_ns(1000);
  for (int line : {1, 2}) {
    v1::SyncPoint* point = report.mutable_syncs()->add_sync_points();
    point->mutable_site()->set_line(line);
    point->set_wasted_ns(60);
  }
  v1::CauseRow* data = report.mutable_gaps()->add_causes();
  data->set_cause(v1::GAP_CAUSE_DATA_WAIT);
  data->set_total_ns(100);
  report.mutable_gpu()->set_verdict("sync");
  v1::Advice advice = WhatToChangeFirst(report);
  ASSERT_EQ(advice.findings_size(), 3);
  EXPECT_EQ(advice.findings(0).rule(), "sync");
  EXPECT_EQ(advice.findings(2).rule(), "data_wait");
  report.mutable_gpu()->set_verdict("data");
  EXPECT_EQ(WhatToChangeFirst(report).findings(0).rule(), "data_wait");
}

// A host-bound job whose device waits for data for almost as long: the small change of
// the host comes last.
TEST(Verdict, PutsNoTrifleOfItsCauseBeforeWhatWinsMore) {
  v1::ReportReply report;
  report.mutable_gpu()->set_traced_ns(1'180'000'000);
  for (auto [cause, ms] : {std::pair{v1::GAP_CAUSE_DATA_WAIT, 543},
                           {v1::GAP_CAUSE_RUN_QUEUE, 529},
                           {v1::GAP_CAUSE_LAUNCH_CALL, 14}}) {
    v1::CauseRow* row = report.mutable_gaps()->add_causes();
    row->set_cause(cause);
    row->set_total_ns(static_cast<uint64_t>(ms) * 1'000'000);
  }
  report.mutable_gpu()->set_verdict("host");
  v1::Advice advice = WhatToChangeFirst(report);
  ASSERT_EQ(advice.findings_size(), 3);
  EXPECT_EQ(advice.findings(0).rule(), "run_queue");
  EXPECT_EQ(advice.findings(1).rule(), "data_wait");
  EXPECT_EQ(advice.findings(2).rule(), "launch_call");
}

}  // namespace
}  // namespace lull
