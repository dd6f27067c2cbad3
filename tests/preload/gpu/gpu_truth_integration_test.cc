// CUPTI in the shim against the simulated device: what is told is what happened.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/preload/gpu/gpu_run.h"
#include "tests/sim/engine/op.h"

namespace lull {
namespace {

using abi::EventType;
using testing::ElementsAre;

constexpr int64_t kClockErrorNs = 50'000;

uint16_t kind(sim::OpKind op) { return static_cast<uint16_t>(op); }

// One event for each operation, in order, at its time.
void expect_same(const std::vector<abi::Event>& events,
                 const std::vector<sim::TruthRecord>& truth) {
  ASSERT_EQ(events.size(), truth.size());
  for (size_t i = 0; i < events.size(); ++i) {
    auto start = static_cast<int64_t>(events[i].start_ns);
    auto end = start + static_cast<int64_t>(events[i].duration_ns);
    EXPECT_NEAR(start, truth[i].start_ns, kClockErrorNs) << i;
    EXPECT_NEAR(end, truth[i].end_ns, kClockErrorNs) << i;
  }
}

void expect_complete(const GpuRun& run) {
  EXPECT_EQ(run.status, 0) << run.output;
  EXPECT_EQ(run.header().cupti_dropped, 0u);
  EXPECT_EQ(run.header().gpu_records_lost, 0u);
  EXPECT_EQ(run.header().gpu_records_bad, 0u);
  expect_same(run.of(EventType::kGpuKernel), run.ops(kind(sim::OpKind::kKernel)));
  expect_same(run.of(EventType::kGpuCopy), run.ops(kind(sim::OpKind::kCopy)));
  expect_same(run.of(EventType::kGpuMemset), run.ops(kind(sim::OpKind::kMemset)));
}

class GpuTruthOf : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Runtimes, GpuTruthOf, testing::Values("12", "13"));

TEST_P(GpuTruthOf, AWholeProgramIsTheTruth) {
  GpuRun run = run_on_gpu({std::string(LULL_PUPPETS "/trainer_host") + GetParam()},
                          {.configure = trace_continuously});
  expect_complete(run);
  EXPECT_THAT(run.tracing(), ElementsAre("active:schedule", "off:process end"));
  EXPECT_GT(run.header().gpu_self_ns, 0u);
}

}  // namespace
}  // namespace lull
