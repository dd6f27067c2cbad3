// What tracing cost on the wall clock, from events to the report.
#include <gtest/gtest.h>

#include "daemon/aggregate/control_step.h"
#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/query/engine.h"
#include "daemon/query/run_totals.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint64_t kOff = 0, kWarmUp = 1, kActive = 2, kYielded = 3;
constexpr uint64_t kSkipped = 5;
constexpr uint64_t kCycle = 26;  // 20 steps of 10 ms, one that warms up, five traced

TestEvent Change(uint64_t at_ns, uint64_t state) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_GPU_TRACING;
  event.start_ns = kJobStartNs + at_ns;
  TracingView{event}.set_state(state);
  return event;
}

// A traced step takes `traced_us` more; every second step 0.2 % less than the others.
lull::v1::Batch TracedInSteps(uint64_t windows, uint64_t traced_us,
                              uint64_t instead_of_active = kActive) {
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 3);
  AddStacks(batch, 1);
  std::vector<TestEvent> events;
  uint64_t at_ns = kSecond;
  for (uint64_t step = 0; step < kSkipped + windows * kCycle + 20; ++step) {
    const uint64_t phase = step < kSkipped ? 0 : (step - kSkipped) % kCycle;
    uint64_t length = 10 * kMs - (step % 2) * 20 * kUs;
    if (phase == 0 && step > kSkipped) events.push_back(Change(at_ns + 5 * kUs, kOff));
    if (phase == 20) events.push_back(Change(at_ns + 50 * kUs, kWarmUp));
    if (phase == 21) events.push_back(Change(at_ns + 5 * kUs, instead_of_active));
    if (phase >= 20) length += traced_us * kUs;
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_STEP;
    event.python = 1;
    event.start_ns = kJobStartNs + at_ns;
    event.duration_ns = length;
    StepView{event}.set_number(step + 1).set_source(lull::v1::STEP_SOURCE_OPTIMIZER);
    events.push_back(event);
    at_ns += length;
  }
  AddRun(batch, 1, 0, 0, events);
  AddCounters(batch, 1, 0, events.size(), kJobStartNs + at_ns + 30 * kSecond);
  return batch;
}

lull::v1::Overhead OverheadOf(const lull::v1::Batch& batch,
                              uint32_t control_steps = 0) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
  hello.mutable_job()->mutable_settings()->set_control_steps(control_steps);
  Pipeline pipeline(hello);
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportRequest request;
  request.add_sections(lull::v1::SECTION_SYNCS);  // in any answer
  return pipeline.Report(request).overhead();
}

TEST(StepCostOfAJob, IsWhatTracedStepsTookLonger) {
  const lull::v1::StepCost cost = OverheadOf(TracedInSteps(10, 900)).step_cost();
  EXPECT_EQ(cost.pid(), 101u);
  EXPECT_EQ(cost.rank(), 3);
  EXPECT_EQ(cost.windows(), 10u);
  EXPECT_EQ(cost.traced_steps(), 50u);
  EXPECT_NEAR(cost.traced_longer().percent(), 9.0, 0.3);
  EXPECT_LE(cost.traced_longer().low_percent(), cost.traced_longer().percent());
  EXPECT_GE(cost.traced_longer().high_percent(), cost.traced_longer().percent());
  // Six steps of each cycle.
  EXPECT_NEAR(cost.paid().percent(), 100 * 60 * 0.9 / (285 * 9.99), 0.05);
  ASSERT_TRUE(cost.has_between_longer());
  EXPECT_NEAR(cost.between_longer().percent(), 0, 0.1);
}

TEST(StepCostOfAJob, IsNotClaimedOfFewWindows) {
  const lull::v1::StepCost cost = OverheadOf(TracedInSteps(5, 900)).step_cost();
  EXPECT_EQ(cost.windows(), 5u);
  EXPECT_FALSE(cost.has_traced_longer());
  EXPECT_FALSE(cost.has_paid());
}

TEST(StepCostOfAJob, IsNotThatOfAnothersTracing) {
  EXPECT_FALSE(OverheadOf(TracedInSteps(10, 900, kYielded)).has_step_cost());
}

TEST(StepCostOfAJob, IsNotThereWithoutTracing) {
  EXPECT_FALSE(OverheadOf(TracedInSteps(0, 900)).has_step_cost());
}

// Steps of 10 ms, of which each tenth rests and takes `less_us` less; of those after
// `sampled_after` all but each fourth do.
lull::v1::Batch WithControlSteps(uint64_t steps, uint64_t less_us,
                                 uint64_t sampled_after = UINT64_MAX) {
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 3);
  AddStacks(batch, 1);
  std::vector<TestEvent> events;
  uint64_t at_ns = kSecond;
  for (uint64_t step = 1; step <= steps; ++step) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_STEP;
    event.python = 1;
    event.start_ns = kJobStartNs + at_ns;
    event.duration_ns = 10 * kMs;
    StepView{event}.set_number(step).set_source(lull::v1::STEP_SOURCE_OPTIMIZER);
    if (step > sampled_after ? step % 4 != 0 : step % 10 == 0) {
      event.duration_ns -= less_us * kUs;
      StepView{event}.set_rested_ns(event.duration_ns);
    }
    events.push_back(event);
    at_ns += event.duration_ns;
  }
  AddRun(batch, 1, 0, 0, events);
  AddCounters(batch, 1, 0, events.size(), kJobStartNs + at_ns + 30 * kSecond);
  if (sampled_after != UINT64_MAX) {
    batch.mutable_counters(0)->set_thinning(lull::v1::THINNING_STEPS);
    batch.mutable_counters(0)->set_first_sampled_step(sampled_after + 1);
  }
  return batch;
}

// Asked for or not, control steps before that are no part of it.
TEST(StepCostOfAJob, IsThatOfSampledStepsFromTheFirstOn) {
  for (const uint32_t control_steps : {0u, 10u}) {
    const lull::v1::StepCost cost =
        OverheadOf(WithControlSteps(400, 500, 200), control_steps).step_cost();
    EXPECT_TRUE(cost.sampled());
    EXPECT_EQ(cost.control_one_in(), control_steps);
    EXPECT_EQ(cost.sampled_from_step(), 201u);
    EXPECT_EQ(cost.rested_steps(), 150u);
    EXPECT_EQ(cost.recorded_steps(), 50u);
    EXPECT_NEAR(cost.recorded_longer().percent(), 100 * 0.5 / 9.5, 0.01);
    EXPECT_NEAR(cost.recording_paid().percent(), 100 * 0.5 / 9.5 / 4, 0.1);
  }
  const lull::v1::StepCost all = OverheadOf(WithControlSteps(400, 500, 0)).step_cost();
  EXPECT_TRUE(all.sampled());
  EXPECT_EQ(all.sampled_from_step(), 0u) << "not worth a word";
}

query::StepTotals StepsOfRun(Pipeline& pipeline) {
  const auto totals = query::TotalsOfRun(
      pipeline.store(), [](const std::string&) { return true; }, MakeJobId(1), 1);
  EXPECT_TRUE(totals.ok() && totals->ranks.size() == 1);
  return totals.ok() && totals->ranks.size() == 1 ? totals->ranks[0].steps
                                                  : query::StepTotals();
}

TEST(StepCostOfAJob, ControlStepsTellWhatRecordingCosts) {
  const lull::v1::StepCost cost =
      OverheadOf(WithControlSteps(200, 500), 10).step_cost();
  EXPECT_EQ(cost.pid(), 101u);
  EXPECT_EQ(cost.control_one_in(), 10u);
  EXPECT_EQ(cost.control_steps(), 20u);
  EXPECT_NEAR(cost.recorded_longer().percent(), 100 * 0.5 / 9.5, 0.01);
  EXPECT_FALSE(cost.has_paid());
  const lull::v1::StepCost few = OverheadOf(WithControlSteps(55, 500), 10).step_cost();
  EXPECT_EQ(few.control_steps(), 5u);
  EXPECT_FALSE(few.has_recorded_longer());
  const lull::v1::StepCost none = OverheadOf(WithControlSteps(5, 500), 10).step_cost();
  EXPECT_EQ(none.control_one_in(), 10u);
  EXPECT_EQ(none.control_steps(), 0u);
}

TEST(StepCostOfAJob, ControlStepsAreNoPartOfWhatWasRecordedAndOfSteps) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->mutable_settings()->set_control_steps(10);
  Pipeline pipeline(hello);
  pipeline.Apply(WithControlSteps(200, 500));
  pipeline.Commit();
  lull::v1::ReportRequest request;
  request.add_sections(lull::v1::SECTION_STEPS);
  request.set_top(1000);
  const lull::v1::ReportReply reply = pipeline.Report(request);
  EXPECT_EQ(reply.steps().count(), 180u);
  for (const lull::v1::StepRow& step : reply.steps().steps()) {
    EXPECT_NE(step.number() % 10, 0u);
  }
  request.clear_sections();
  request.set_phase(lull::v1::PHASE_ALL);
  const lull::v1::ReportReply overview = pipeline.Report(request);
  ASSERT_EQ(overview.processes_size(), 1);
  const lull::v1::ProcessRow& process = overview.processes(0);
  EXPECT_EQ(process.duration_ns() - process.recorded_ns(), 20 * 9'500 * kUs);
  EXPECT_EQ(process.rested_ns(), 20 * 9'500 * kUs);
  // But they are steps that have ended.
  const query::StepTotals all = StepsOfRun(pipeline);
  EXPECT_EQ(all.count, 200u);
  EXPECT_EQ(all.total_ns, 180 * 10 * kMs + 20 * 9'500 * kUs);
}

TEST(StepCostOfAJob, ARestThatNoStepTellsIsNoStepAndNotRecorded) {
  lull::v1::Batch batch;
  batch.set_sequence(1);
  *batch.add_processes() = MakeProcess(1, 101, 3);
  std::vector<TestEvent> events;
  TestEvent step;
  step.type = lull::v1::EVENT_TYPE_STEP;
  step.start_ns = kJobStartNs + kSecond;
  step.duration_ns = kSecond;
  StepView{step}.set_number(1).set_source(lull::v1::STEP_SOURCE_OPTIMIZER);
  events.push_back(step);
  // Cut off by the relay after 200 ms, which tells that; the step ends later.
  TestEvent rest = step;
  rest.start_ns = kJobStartNs + 2 * kSecond;
  rest.duration_ns = 200 * kMs;
  StepView{rest}.set_number(0).set_source(lull::v1::STEP_SOURCE_NONE);
  StepView{rest}.set_rested_ns(200 * kMs);
  events.push_back(rest);
  TestEvent cut = step;
  cut.start_ns = rest.start_ns;
  cut.duration_ns = 900 * kMs;
  cut.flags = aggregate::kFlagCutOff;
  StepView{cut}.set_number(2).set_rested_ns(200 * kMs);
  events.push_back(cut);
  AddRun(batch, 1, 0, 0, events);
  AddCounters(batch, 1, 0, events.size(), kJobStartNs + 40 * kSecond);
  Pipeline pipeline(MakeHello(MakeJobId(1)));
  pipeline.Apply(batch);
  pipeline.Commit();
  lull::v1::ReportRequest request;
  request.set_phase(lull::v1::PHASE_ALL);
  const lull::v1::ReportReply overview = pipeline.Report(request);
  ASSERT_EQ(overview.processes_size(), 1);
  const lull::v1::ProcessRow& process = overview.processes(0);
  EXPECT_EQ(process.duration_ns() - process.recorded_ns(), 200 * kMs);
  request.add_sections(lull::v1::SECTION_STEPS);
  const lull::v1::ReportReply reply = pipeline.Report(request);
  EXPECT_EQ(reply.steps().count(), 1u);
  EXPECT_EQ(StepsOfRun(pipeline).count, 2u) << "and the rest is none";
}

}  // namespace
}  // namespace lull::test
