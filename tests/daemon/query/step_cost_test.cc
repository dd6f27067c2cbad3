// What tracing cost on the wall clock, from events to the report.
#include <gtest/gtest.h>

#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "daemon/query/engine.h"
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

lull::v1::Overhead OverheadOf(const lull::v1::Batch& batch) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
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

}  // namespace
}  // namespace lull::test
