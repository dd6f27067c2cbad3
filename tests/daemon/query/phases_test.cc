// Set-up and steady state, told by steps.
#include <gtest/gtest.h>

#include "daemon/base/event_views.h"
#include "daemon/query/engine.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint64_t kSecondMs = 1000;
constexpr uint64_t kFirstStepMs = 6300;  // until then: imports, a model
constexpr uint64_t kStepMs = 500;

TestEvent Sync(uint64_t at_ms) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_SYNC;
  event.api = kApiSync;
  event.python = 1;
  event.start_ns = kJobStartNs + at_ms * kMs;
  event.duration_ns = kMs;
  return event;
}

// The `number`th step; the first has no duration.
TestEvent Step(uint64_t number, uint32_t source) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_STEP;
  event.python = 1;
  uint64_t end_ms = kFirstStepMs + (number - 1) * kStepMs;
  event.duration_ns = number == 1 ? 0 : kStepMs * kMs;
  event.start_ns = kJobStartNs + end_ms * kMs - event.duration_ns;
  StepView{event}.set_number(number).set_source(source);
  return event;
}

constexpr uint32_t kOptimizer = 1, kPeriod = 3;

// A sync a second and `steps` steps.
lull::v1::Batch Job(uint64_t steps, uint32_t source = kOptimizer) {
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  AddStacks(batch, 1);
  uint64_t end_ms = kFirstStepMs + steps * kStepMs;
  std::vector<TestEvent> events;
  uint64_t next = 1;
  for (uint64_t at = 0; at < end_ms; at += kSecondMs) {
    for (; next <= steps && kFirstStepMs + (next - 1) * kStepMs <= at; ++next) {
      events.push_back(Step(next, source));
    }
    events.push_back(Sync(at + 1));
  }
  for (; next <= steps; ++next) events.push_back(Step(next, source));
  AddRun(batch, 1, 0, 0, events);
  // Steps are told once nothing can change them any more.
  AddCounters(batch, 1, 0, events.size(), kJobStartNs + (end_ms + 2000) * kMs);
  return batch;
}

lull::v1::ReportReply Report(Pipeline& pipeline, lull::v1::Phase phase,
                             uint64_t since_ns = 0) {
  lull::v1::ReportRequest request;
  request.set_phase(phase);
  if (since_ns != 0) request.set_since_ns(since_ns);
  return pipeline.Report(request);
}

TEST(Phases, SteadyStateBeginsWithTheFirstWholeSecondAfterTheWarmUp) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(Job(40));  // ends after 26.3 s; step 4 begins after 7.3 s
  pipeline.Commit();
  lull::v1::ReportReply all = Report(pipeline, lull::v1::PHASE_ALL);
  EXPECT_EQ(all.syncs().total_calls(), 27u);
  EXPECT_EQ(all.phase(), lull::v1::PHASE_ALL);
  lull::v1::ReportReply shown = Report(pipeline, lull::v1::PHASE_UNSPECIFIED);
  EXPECT_EQ(shown.phase(), lull::v1::PHASE_STEADY);
  EXPECT_EQ(shown.setup_ns(), 8000 * kMs);
  EXPECT_EQ(shown.syncs().total_calls(), 19u);
  EXPECT_EQ(Report(pipeline, lull::v1::PHASE_SETUP).syncs().total_calls(), 8u);
  // Shares are of the time that is shown.
  EXPECT_EQ(shown.shares().working_ns(), all.shares().working_ns() - 8000 * kMs);
  // Steps are those of the whole run, the first one included.
  EXPECT_EQ(shown.steps().count(), 40u);
  EXPECT_EQ(shown.steps().median().duration_ns(), kStepMs * kMs);
}

TEST(Phases, ARangeThatIsGivenShowsAllOfIt) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(Job(40));
  pipeline.Commit();
  lull::v1::ReportReply range =
      Report(pipeline, lull::v1::PHASE_UNSPECIFIED, 3000 * kMs);
  EXPECT_EQ(range.phase(), lull::v1::PHASE_ALL);
  EXPECT_EQ(range.syncs().total_calls(), 24u);
  EXPECT_EQ(Report(pipeline, lull::v1::PHASE_SETUP, 3000 * kMs).syncs().total_calls(),
            5u);
}

TEST(Phases, AreNotGuessed) {
  struct Case {
    uint64_t steps;
    uint32_t source;
  };
  // Too few steps, and steps that were found by the order of launches.
  for (Case c : {Case{9, kOptimizer}, Case{40, kPeriod}}) {
    Pipeline pipeline(MakeHello(MakeJobId(1)));
    pipeline.Apply(Job(c.steps, c.source));
    pipeline.Commit();
    EXPECT_EQ(Report(pipeline, lull::v1::PHASE_UNSPECIFIED).phase(),
              lull::v1::PHASE_ALL);
    lull::v1::ReportRequest request;
    request.set_phase(lull::v1::PHASE_STEADY);
    lull::v1::ReportReply reply;
    absl::Status status = query::Report(
        pipeline.store(), [](const std::string&) { return true; }, request, &reply);
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  }
}

// A training of less than a second, and a process that lives on: what follows the last step
// is not the steady state of anything.
TEST(Phases, AProcessThatOutlivesAShortTrainingIsNotDivided) {
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 0);
  AddStacks(batch, 1);
  std::vector<TestEvent> events;
  for (uint64_t number = 1; number <= 60; ++number) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_STEP;
    event.python = 1;
    event.duration_ns = number == 1 ? 0 : 10 * kMs;
    event.start_ns = kJobStartNs + (6100 + (number - 1) * 10) * kMs;
    StepView{event}.set_number(number).set_source(kOptimizer);
    events.push_back(event);
  }
  for (uint64_t at = 6'701; at < 9'000; at += 100) events.push_back(Sync(at));
  AddRun(batch, 1, 0, 0, events);
  AddCounters(batch, 1, 0, events.size(), kJobStartNs + 12'000 * kMs);
  pipeline.Apply(batch);
  pipeline.Commit();
  EXPECT_EQ(Report(pipeline, lull::v1::PHASE_UNSPECIFIED).phase(), lull::v1::PHASE_ALL);
}

}  // namespace
}  // namespace lull::test
