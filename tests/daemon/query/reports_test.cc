#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/base/event_views.h"
#include "daemon/query/totals.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

TestEvent Sync(uint64_t at_ms, uint64_t duration_ms, uint32_t python) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_SYNC;
  event.api = kApiSync;
  event.python = python;
  event.native = kPythonStacks + 1;
  event.start_ns = kJobStartNs + at_ms * kMs;
  event.duration_ns = duration_ms * kMs;
  return event;
}

lull::v1::Batch FirstBatch() {
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  *batch.add_processes() = MakeProcess(2, 102, 1);
  *batch.add_processes() = MakeProcess(3, 103, -1);
  for (uint64_t key : {1, 2, 3}) AddStacks(batch, key);
  return batch;
}

lull::v1::Batch TwoRanksAndALauncher() {
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 1, 0, 0, {Sync(1, 5, 1), Sync(20, 9, 4), Sync(40, 1, 2)});
  AddRun(batch, 2, 0, 0, {Sync(1, 7, 1)});
  AddRun(batch, 3, 0, 0, {Sync(1, 1000, 1)});
  AddCounters(batch, 1, 0, 3, kJobStartNs + 100 * kMs);
  AddCounters(batch, 2, 0, 1, kJobStartNs + 100 * kMs);
  return batch;
}

TEST(Reports, LeaveOutProcessesThatDoNoWorkUnlessAskedForByPid) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(TwoRanksAndALauncher());
  pipeline.Commit();
  lull::v1::ReportReply all = pipeline.Report({});
  EXPECT_EQ(all.syncs().total_calls(), 4u);
  EXPECT_EQ(all.processes_size(), 2);
  EXPECT_EQ(all.job().processes(), 3u);
  EXPECT_EQ(all.job().working_processes(), 2u);
  lull::v1::ReportRequest request;
  request.set_pid(103);
  EXPECT_EQ(pipeline.Report(request).syncs().total_blocked_ns(), 1000 * kMs);
  request.clear_pid();
  request.set_rank(1);
  EXPECT_EQ(pipeline.Report(request).syncs().total_blocked_ns(), 7 * kMs);
}

TEST(Reports, HandTheSettingsOfAJobThrough) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->mutable_settings()->set_wait_threshold_ns(123);
  Pipeline pipeline(hello);
  pipeline.Apply(TwoRanksAndALauncher());
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).job().settings().wait_threshold_ns(), 123u);
  pipeline.Restart();
  EXPECT_EQ(pipeline.Report({}).job().settings().wait_threshold_ns(), 123u);
}

TEST(Reports, CoverAllProcessesWhenNoneWorks) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 3, 0, 0, {Sync(1, 1000, 1)});
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).syncs().total_calls(), 1u);
}

TEST(Reports, MergeTheSameLineOfSeveralRanksAndShowTheLongestCall) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(TwoRanksAndALauncher());
  pipeline.Commit();
  lull::v1::Syncs syncs = pipeline.Report({}).syncs();
  ASSERT_EQ(syncs.sync_points_size(), 3);
  const lull::v1::SyncPoint& first = syncs.sync_points(0);  // stack 1: line 11, f1
  EXPECT_EQ(first.api(), "cudaStreamSynchronize");
  EXPECT_EQ(first.calls(), 2u);
  EXPECT_EQ(first.blocked_ns(), 12 * kMs);
  EXPECT_EQ(first.max_ns(), 7 * kMs);
  EXPECT_EQ(first.site().file(), "/home/u/train.py");
  EXPECT_EQ(first.site().line(), 11);
  EXPECT_EQ(first.site().function(), "f1");
  ASSERT_EQ(first.stack_size(), 3);
  EXPECT_EQ(first.stack(2).function(), "main");
  EXPECT_EQ(first.native_stack(1).function(), "at::op9");
}

TEST(Reports, CutRowsAndNotTotals) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(TwoRanksAndALauncher());
  pipeline.Commit();
  lull::v1::ReportRequest request;
  request.set_top(1);
  lull::v1::Syncs syncs = pipeline.Report(request).syncs();
  EXPECT_EQ(syncs.sync_points_size(), 1);
  EXPECT_EQ(syncs.total_calls(), 4u);
  EXPECT_EQ(syncs.total_blocked_ns(), 22 * kMs);
}

TEST(Reports, AdviceIsTheSameHoweverFewRowsAreAskedFor) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  std::vector<TestEvent> calls;
  for (uint64_t i = 0; i < 40; ++i) {
    calls.push_back(Sync(10 * i, i % 2 == 0 ? 5 : 3, i % 2 == 0 ? 1 : 4));
  }
  AddRun(batch, 1, 0, 0, calls);
  AddCounters(batch, 1, 0, 40, kJobStartNs + 400 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportReply all = pipeline.Report({});
  ASSERT_EQ(all.advice().findings_size(), 2);
  lull::v1::ReportRequest request;
  request.set_top(1);
  lull::v1::ReportReply one = pipeline.Report(request);
  EXPECT_EQ(one.syncs().sync_points_size(), 1);
  EXPECT_EQ(one.advice().SerializeAsString(), all.advice().SerializeAsString());
}

TEST(Reports, CountEveryLossOnce) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 1, 0, 0, {Sync(1, 5, 1)});
  AddRun(batch, 1, 0, 11, {Sync(20, 9, 4)});  // ten positions never came
  AddCounters(batch, 1, 0, 20, kJobStartNs + 100 * kMs);
  lull::v1::ProcessCounters* counters = batch.mutable_counters(0);
  counters->set_lost_no_ring(3);
  counters->mutable_rings(0)->set_lost_full(4);
  counters->mutable_rings(0)->set_lost_relay(18);
  counters->mutable_rings(0)->set_self_ns(kMs);
  pipeline.Apply(batch);
  pipeline.Apply(batch);  // totals, not differences
  pipeline.Commit();
  lull::v1::ReportReply reply = pipeline.Report({});
  const lull::v1::Losses& losses = reply.losses();
  EXPECT_EQ(losses.events_committed(), 20u);
  EXPECT_EQ(losses.events_stored(), 2u);
  EXPECT_EQ(losses.lost_relay(), 18u);
  EXPECT_EQ(losses.events_committed(), losses.events_stored() + losses.lost_relay());
  EXPECT_EQ(losses.events_lost(), 18u + 3 + 4);
  EXPECT_EQ(reply.overhead().self_ns(), kMs);
  EXPECT_NEAR(reply.overhead().percent(), 1.0, 1e-9);  // 1 ms of 100 ms
}

TEST(Reports, CountTheLossesOfProcessesThatDoNoWorkToo) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = TwoRanksAndALauncher();
  // A rank that was given up before its first call of the GPU.
  AddCounters(batch, 3, 0, 5, kJobStartNs + 100 * kMs);
  batch.mutable_counters(2)->set_gpu_calls(0);
  batch.mutable_counters(2)->set_no_memory(true);
  batch.mutable_counters(2)->set_unanswered(true);
  batch.mutable_counters(2)->set_unread(true);
  batch.mutable_counters(2)->mutable_rings(0)->set_lost_relay(4);
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportReply all = pipeline.Report({});
  EXPECT_EQ(all.processes_size(), 2);
  EXPECT_EQ(all.losses().processes_without_memory(), 1u);
  EXPECT_EQ(all.losses().unrecorded_processes(), 1u);
  EXPECT_EQ(all.losses().processes_unread(), 1u);
  EXPECT_EQ(all.losses().lost_relay(), 4u);
  lull::v1::ReportRequest request;
  request.set_rank(1);
  EXPECT_EQ(pipeline.Report(request).losses().lost_relay(), 0u);
}

TEST(Reports, CountProcessesThatOutliveTheJob) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(TwoRanksAndALauncher());
  lull::v1::Batch end;
  end.set_sequence(2);
  end.add_process_ends()->set_process_key(1);
  end.mutable_process_ends(0)->set_end_ns(kJobStartNs + 100 * kMs);
  pipeline.Apply(end);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().processes_end_unseen(), 0u) << "it runs";
  end = {};
  end.set_sequence(3);
  end.mutable_job_end()->set_known(true);
  end.mutable_job_end()->set_end_ns(kJobStartNs + 100 * kMs);
  pipeline.Apply(end);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().processes_end_unseen(), 2u);
}

TEST(Reports, CallAGapThatNobodyDeclaredLost) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 1, 0, 7, {Sync(1, 5, 1)});
  AddCounters(batch, 1, 0, 8, kJobStartNs + 100 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().lost_relay(), 7u);
}

TEST(Reports, CallWhatNeverCameLostOnceTheProcessIsOver) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 1, 0, 0, {Sync(1, 5, 1)});
  AddCounters(batch, 1, 0, 5, kJobStartNs + 100 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().lost_relay(), 0u) << "four may yet come";
  lull::v1::Batch end;
  end.set_sequence(2);
  end.add_process_ends()->set_process_key(1);
  end.mutable_process_ends(0)->set_end_ns(kJobStartNs + 100 * kMs);
  pipeline.Apply(end);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().lost_relay(), 4u);
}

TEST(Reports, SayUntilWhenAJobIsCompleteWhoseEndNobodySaw) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 100, 0);
  AddStacks(batch, 1);
  AddRun(batch, 1, 0, 0, {Sync(1, 5, 1)});
  AddCounters(batch, 1, 0, 1, kJobStartNs + 60 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_FALSE(pipeline.Report({}).job().end_unseen());
  lull::v1::Batch end;
  end.set_sequence(2);
  end.set_set_aside(3);
  end.mutable_job_end()->set_end_ns(kJobStartNs + 70 * kMs);
  end.mutable_job_end()->set_cut_off(true);
  end.mutable_job_end()->set_unreachable_ns(9);
  pipeline.Apply(end);
  pipeline.Commit();
  pipeline.Restart();  // from the store
  lull::v1::Job job = pipeline.Report({}).job();
  EXPECT_TRUE(job.end_unseen());
  EXPECT_EQ(job.complete_until_ns(), 60 * kMs);
  EXPECT_EQ(job.batches_set_aside(), 3u);
  EXPECT_EQ(job.unreachable_ns(), 9u);
}

TEST(Reports, TellFullCollectionsInTheStepsFromThoseOfSetUp) {
  auto event = [](uint32_t type, uint64_t at_ms, uint64_t duration_ms,
                  uint64_t number) {
    TestEvent event;
    event.type = type;
    event.start_ns = kJobStartNs + at_ms * kMs;
    event.duration_ns = duration_ms * kMs;
    const bool step = type == lull::v1::EVENT_TYPE_STEP;
    if (step) {
      StepView{event}.set_number(number).set_source(v1::STEP_SOURCE_NVTX_RANGE);
    } else {
      GcPauseView{event}.set_generation(static_cast<uint32_t>(number));
    }
    return event;
  };
  constexpr auto kGc = lull::v1::EVENT_TYPE_GC_PAUSE;
  constexpr auto kStep = lull::v1::EVENT_TYPE_STEP;
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddRun(
      batch, 1, 0, 0,
      {event(kGc, 1000, 200, 2), event(kGc, 3300, 100, 2), event(kStep, 3500, 500, 0),
       event(kGc, 4100, 30, 2), event(kStep, 4000, 500, 1), event(kGc, 4600, 7, 1),
       event(kGc, 5100, 40, 2), event(kStep, 4500, 1500, 2)});
  AddCounters(batch, 1, 0, 8, kJobStartNs + 7000 * kMs);
  AddRun(batch, 2, 0, 0, {event(kGc, 1000, 200, 2)});  // no steps
  AddCounters(batch, 2, 0, 1, kJobStartNs + 7000 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::GcPauses gc = pipeline.Report({}).gc();
  EXPECT_EQ(gc.total_count(), 6u);
  EXPECT_EQ(gc.full_in_steps_count(), 2u);
  EXPECT_EQ(gc.full_in_steps_ns(), 70 * kMs);
  lull::v1::ReportRequest early;
  early.set_until_ns(5000 * kMs);
  EXPECT_EQ(pipeline.Report(early).gc().full_in_steps_ns(), 30 * kMs);
}

TEST(Reports, IgnoreCountersThatAreOlderThanWhatIsKnown) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  AddCounters(batch, 1, 0, 50, kJobStartNs + 20);
  AddCounters(batch, 1, 0, 40, kJobStartNs + 10);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_EQ(pipeline.Report({}).losses().events_committed(), 50u);
}

TEST(Reports, CountFreesOfBlocksThatNobodySaw) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = FirstBatch();
  TestEvent free;
  free.type = v1::EVENT_TYPE_TORCH_MEMORY;
  free.flags = 1;
  MemoryView{free}.set_address(0x1000).set_bytes(77);
  AddRun(batch, 1, 0, 0, {free});
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::Allocations reply = pipeline.Report({}).allocations();
  EXPECT_EQ(reply.unknown_frees(), 1u);
  EXPECT_EQ(reply.allocation_sites_size(), 0);
}

TEST(Reports, MatchAFreeWhoseAllocationComesInOneBatchLater) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  TestEvent alloc;
  alloc.type = v1::EVENT_TYPE_TORCH_MEMORY;
  alloc.api = kApiTorch;
  alloc.python = 1;
  MemoryView{alloc}.set_address(0x1000).set_bytes(64);
  TestEvent free = alloc;
  free.flags = 1;
  free.start_ns += 5;
  lull::v1::Batch batch = FirstBatch();
  AddRun(batch, 1, 1, 0, {free});
  pipeline.Apply(batch);
  lull::v1::Batch second;
  second.set_sequence(2);
  AddRun(second, 1, 0, 0, {alloc});
  pipeline.Apply(second);
  pipeline.Commit();
  lull::v1::Allocations reply = pipeline.Report({}).allocations();
  ASSERT_EQ(reply.allocation_sites_size(), 1);
  EXPECT_EQ(reply.allocation_sites(0).live_bytes(), 0);
  EXPECT_EQ(reply.allocation_sites(0).peak_bytes(), 64);
  EXPECT_EQ(reply.allocation_sites(0).frees(), 1u);
}

TEST(Reports, KeepCountingWhenTheDefinitionOfAStackWasLost) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  AddRun(batch, 9, 0, 0,
         {Sync(1, 5, 3)});  // neither the process nor the stack is known
  pipeline.Apply(batch);
  lull::v1::Batch second;
  second.set_sequence(2);
  AddStacks(second, 9);
  AddRun(second, 9, 0, 1, {Sync(7, 5, 3)});
  pipeline.Apply(second);
  pipeline.Commit();
  lull::v1::Syncs syncs = pipeline.Report({}).syncs();
  EXPECT_EQ(syncs.total_calls(), 2u);
  ASSERT_EQ(syncs.sync_points_size(), 2);
  EXPECT_EQ(syncs.sync_points(0).calls(), 1u);
}

}  // namespace
}  // namespace lull::test
