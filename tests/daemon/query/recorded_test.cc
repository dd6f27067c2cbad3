// Jobs that did not record all the time, and what that does to shares and lengths.
#include <gtest/gtest.h>

#include <limits>

#include "daemon/base/event_views.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

uint64_t At(uint64_t second) { return kJobStartNs + second * kSecond; }

lull::v1::Hello DormantHello() {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_dormant(true);
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
  return hello;
}

// A process that lives from second 0 to `end`, with so much time in our own code.
lull::v1::Batch Life(uint64_t sequence, uint64_t end, uint64_t self_ns) {
  lull::v1::Batch batch;
  batch.set_sequence(sequence);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  batch.mutable_processes(0)->set_start_ns(At(0));
  AddStacks(batch, 1);
  TestEvent sync;
  sync.type = v1::EVENT_TYPE_SYNC;
  sync.api = kApiSync;
  sync.python = 1;
  sync.native = kPythonStacks + 1;
  sync.start_ns = At(11);
  sync.duration_ns = kSecond;
  AddRun(batch, 1, 0, 0, {sync});
  AddCounters(batch, 1, 0, 1, At(end));
  batch.mutable_counters(0)->mutable_rings(0)->set_self_ns(self_ns);
  return batch;
}

void AddStretch(lull::v1::Batch& batch, uint64_t number, uint64_t start_ns,
                uint64_t end_ns) {
  lull::v1::ArmedStretch* stretch = batch.add_stretches();
  stretch->set_number(number);
  stretch->set_start_ns(start_ns);
  stretch->set_end_ns(end_ns);
}

TEST(Recorded, AJobOfWhichNothingIsToldRecordedAllTheTime) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(Life(1, 100, kSecond));
  pipeline.Commit();
  lull::v1::ReportReply reply = pipeline.Report({});
  EXPECT_FALSE(reply.job().partly_recorded());
  EXPECT_FALSE(reply.job().asleep());
  EXPECT_FALSE(reply.processes(0).has_recorded_ns());
  EXPECT_DOUBLE_EQ(reply.overhead().percent(), 1.0);
}

TEST(Recorded, ADormantJobThatWasNeverArmedRecordedNothing) {
  Pipeline pipeline(DormantHello());
  lull::v1::Batch batch = Life(1, 100, 0);
  batch.clear_rings();
  batch.clear_stacks();
  batch.mutable_counters(0)->clear_rings();
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportReply reply = pipeline.Report({});
  EXPECT_TRUE(reply.job().partly_recorded());
  EXPECT_TRUE(reply.job().asleep());
  EXPECT_EQ(reply.job().recorded_ns(), 0u);
  EXPECT_EQ(reply.job().recorded_size(), 0);
  EXPECT_EQ(reply.job().duration_ns(), 100 * kSecond) << "as of its last sign of life";
  EXPECT_EQ(reply.gpu().missing(),
            "the job was asleep all the time (lull arm wakes one up)");
}

TEST(Recorded, WhatDividesByTimeDividesByTheTimeThatWasRecorded) {
  Pipeline pipeline(DormantHello());
  lull::v1::Batch batch = Life(1, 100, kSecond);
  AddStretch(batch, 1, At(10), At(14));
  AddStretch(batch, 2, At(20), 0);
  pipeline.Apply(batch);
  lull::v1::Batch later;  // the second one ends
  later.set_sequence(2);
  AddStretch(later, 2, At(20), At(36));
  pipeline.Apply(later);
  pipeline.Commit();
  lull::v1::ReportReply reply = pipeline.Report({});
  const lull::v1::Job& job = reply.job();
  EXPECT_TRUE(job.partly_recorded());
  EXPECT_TRUE(job.asleep());
  EXPECT_EQ(job.stretches(), 2u);
  EXPECT_EQ(job.recorded_ns(), 20 * kSecond);
  ASSERT_EQ(job.recorded_size(), 2);
  EXPECT_EQ(job.recorded(0).start_ns(), 10 * kSecond);
  EXPECT_EQ(job.recorded(0).end_ns(), 14 * kSecond);
  EXPECT_EQ(job.recorded(1).end_ns(), 36 * kSecond);
  EXPECT_EQ(reply.processes(0).duration_ns(), 100 * kSecond);
  EXPECT_EQ(reply.processes(0).recorded_ns(), 20 * kSecond);
  EXPECT_DOUBLE_EQ(reply.overhead().percent(), 5.0);
}

TEST(Recorded, AStretchThatGoesOnEndsWithTheJob) {
  Pipeline pipeline(DormantHello());
  lull::v1::Batch batch = Life(1, 50, kSecond);
  AddStretch(batch, 1, At(10), 0);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_FALSE(pipeline.Report({}).job().asleep());
  EXPECT_EQ(pipeline.Report({}).job().recorded_ns(), 40 * kSecond);
  lull::v1::Batch end;
  end.set_sequence(2);
  end.mutable_job_end()->set_end_ns(At(60));
  pipeline.Apply(end);
  pipeline.Commit();
  EXPECT_FALSE(pipeline.Report({}).job().asleep()) << "it is over";
  EXPECT_EQ(pipeline.Report({}).job().recorded_ns(), 50 * kSecond);
}

TEST(Recorded, AStepThatSpansASleepIsNone) {
  Pipeline pipeline(DormantHello());
  lull::v1::Batch first = Life(1, 19, 0);
  AddStretch(first, 1, At(10), At(14));
  AddStretch(first, 2, At(20), 0);
  pipeline.Apply(first);
  auto step = [](uint64_t number, uint64_t start) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_STEP;
    event.start_ns = At(start);
    event.duration_ns = kSecond;
    StepView{event}.set_number(number).set_source(v1::STEP_SOURCE_NVTX_RANGE);
    return event;
  };
  TestEvent spanning = step(0, 13);
  spanning.duration_ns = 8 * kSecond;
  lull::v1::Batch second;
  second.set_sequence(2);
  AddRun(second, 1, 0, 1, {spanning, step(1, 21), step(2, 22)});
  AddCounters(second, 1, 0, 4, At(40));
  pipeline.Apply(second);
  pipeline.Commit();
  auto reader = *pipeline.store().NewReader();
  auto job = reader->catalogue().FindJob(MakeJobId(1));
  auto steps = reader->catalogue().Steps(
      reader->catalogue().All<storage::ProcessRow>(job->front().id)->front().id, 0,
      std::numeric_limits<int64_t>::max(), 0);
  ASSERT_TRUE(steps.ok()) << steps.status();
  ASSERT_EQ(steps->size(), 2u);
  EXPECT_EQ(steps->front().start_ns, At(21));
}

TEST(Recorded, AJobThatWasDisarmedWasRecordedUpToThen) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch = Life(1, 40, kSecond);
  AddStretch(batch, 1, kJobStartNs, At(20));
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportReply reply = pipeline.Report({});
  EXPECT_TRUE(reply.job().partly_recorded());
  EXPECT_EQ(reply.job().recorded_ns(), 20 * kSecond);
  EXPECT_DOUBLE_EQ(reply.overhead().percent(), 5.0);
}

}  // namespace
}  // namespace lull::test
