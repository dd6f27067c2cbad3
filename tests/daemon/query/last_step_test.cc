// How long no step of a job that runs has ended, through ingest, store and query.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/base/event_views.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

TestEvent StepThatEnds(uint64_t number, uint64_t end_ns, uint64_t length_ns,
                       uint32_t source = lull::v1::STEP_SOURCE_OPTIMIZER) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_STEP;
  event.start_ns = kJobStartNs + end_ns - length_ns;
  event.duration_ns = length_ns;
  StepView{event}.set_number(number).set_source(source);
  return event;
}

// A rank with a step of 100 ms in each tenth of a second until `end_ns`, that lives on.
void AddRankWithSteps(lull::v1::Batch& batch, uint64_t key, uint64_t end_ns,
                      uint64_t alive_ns,
                      uint32_t source = lull::v1::STEP_SOURCE_OPTIMIZER) {
  *batch.add_processes() =
      MakeProcess(key, 100 + static_cast<uint32_t>(key), static_cast<int32_t>(key) - 1);
  std::vector<TestEvent> events;
  for (uint64_t at = 100 * kMs; at <= end_ns; at += 100 * kMs) {
    events.push_back(StepThatEnds(events.size() + 1, at, 100 * kMs, source));
  }
  TestEvent sign;  // of life
  sign.type = lull::v1::EVENT_TYPE_SYNC;
  sign.api = kApiSync;
  sign.duration_ns = kMs;
  sign.start_ns = kJobStartNs + alive_ns - kMs;
  events.push_back(sign);
  AddRun(batch, key, 0, 0, events);
  AddCounters(batch, key, 0, events.size(), kJobStartNs + alive_ns);
}

class LastStepOfAJob : public ::testing::Test {
 protected:
  LastStepOfAJob() : pipeline_(MakeHello(MakeJobId(1))) { batch_.set_sequence(1); }

  lull::v1::Job Told() {
    pipeline_.Apply(batch_);
    pipeline_.Commit();
    return pipeline_.Report({}).job();
  }

  lull::v1::Batch batch_;
  Pipeline pipeline_;
};

TEST_F(LastStepOfAJob, IsTheNewestOfAllRanksUntilTheLastSignOfLife) {
  AddRankWithSteps(batch_, 1, 10 * kSecond, 300 * kSecond);
  AddRankWithSteps(batch_, 2, 12 * kSecond, 290 * kSecond);
  const lull::v1::Job job = Told();
  EXPECT_EQ(job.since_step_ns(), (300 - 12) * kSecond);
  EXPECT_EQ(job.step_ns(), 100 * kMs);
}

TEST_F(LastStepOfAJob, IsNotThatOfProcessesThatHaveEnded) {
  AddRankWithSteps(batch_, 1, 10 * kSecond, 300 * kSecond);
  AddRankWithSteps(batch_, 2, 12 * kSecond, 12 * kSecond);
  auto* exit = batch_.add_process_ends();
  exit->set_process_key(2);
  exit->set_end_ns(kJobStartNs + 13 * kSecond);
  EXPECT_EQ(Told().since_step_ns(), (300 - 10) * kSecond);
}

TEST_F(LastStepOfAJob, IsOneThatTheProgramMarks) {
  AddRankWithSteps(batch_, 1, 10 * kSecond, 300 * kSecond);
  // Rank 2 has periods in its launches alone. That none is found any more does not mean
  // that it makes no steps, so nothing is said of the job.
  AddRankWithSteps(batch_, 2, 12 * kSecond, 290 * kSecond,
                   lull::v1::STEP_SOURCE_PERIOD);
  EXPECT_EQ(Told().step_ns(), 0u);
}

TEST_F(LastStepOfAJob, LeavesOutWhatWasNotRecorded) {
  AddRankWithSteps(batch_, 1, 10 * kSecond, 300 * kSecond);
  const uint64_t stretches[][2] = {{0, 20}, {280, 0}};
  for (const auto& [start, end] : stretches) {
    lull::v1::ArmedStretch* stretch = batch_.add_stretches();
    stretch->set_number(static_cast<uint64_t>(batch_.stretches_size()));
    stretch->set_start_ns(kJobStartNs + start * kSecond);
    if (end != 0) stretch->set_end_ns(kJobStartNs + end * kSecond);
  }
  EXPECT_EQ(Told().since_step_ns(), (10 + 20) * kSecond);
}

TEST_F(LastStepOfAJob, IsNotToldOfOneThatSleepsOrIsOverOrHasNoSteps) {
  AddRankWithSteps(batch_, 1, 0, 300 * kSecond);
  EXPECT_EQ(Told().step_ns(), 0u);
  batch_.Clear();
  batch_.set_sequence(2);
  AddRankWithSteps(batch_, 2, 10 * kSecond, 300 * kSecond);
  lull::v1::ArmedStretch* stretch = batch_.add_stretches();
  stretch->set_number(1);
  stretch->set_start_ns(kJobStartNs);
  stretch->set_end_ns(kJobStartNs + 20 * kSecond);
  EXPECT_EQ(Told().step_ns(), 0u);
  batch_.Clear();
  batch_.set_sequence(3);
  batch_.mutable_job_end()->set_end_ns(kJobStartNs + 301 * kSecond);
  EXPECT_EQ(Told().step_ns(), 0u);
}

}  // namespace
}  // namespace lull::test
