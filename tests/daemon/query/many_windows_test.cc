// A job that is traced in more windows than are kept one by one: three hours of steps
// of 100 ms do.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/base/gpu_event_views.h"
#include "daemon/storage/catalogue.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

constexpr uint64_t kTracingOff = 0, kTracingWarmsUp = 1, kTracingIsOn = 2;
constexpr uint64_t kWindows = storage::kMostTracing / 3 + 700;
constexpr uint64_t kPeriodNs = 3 * kSecond;

TestEvent ChangeOfTracing(uint64_t at_ns, uint64_t state) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_GPU_TRACING;
  event.start_ns = kJobStartNs + at_ns;
  TracingView{event}.set_state(state);
  return event;
}

TestEvent Kernel(uint64_t at_ns) {
  TestEvent event;
  event.type = lull::v1::EVENT_TYPE_GPU_KERNEL;
  event.python = 1;  // refs of a kernel and of a stream
  event.native = 1;
  event.start_ns = kJobStartNs + at_ns;
  event.duration_ns = 10 * kUs;
  return event;
}

// In each two kernels, one of them while CUPTI warms up.
lull::v1::Batch Windows(uint64_t sequence, uint64_t begin, uint64_t end) {
  lull::v1::Batch batch;
  batch.set_sequence(sequence);
  if (sequence == 1) {
    *batch.add_processes() = MakeProcess(1, 101, 0);
    AddStacks(batch, 1);
    AddGpu(batch, 1);
  }
  std::vector<TestEvent> events;
  for (uint64_t i = begin; i < end; ++i) {
    const uint64_t at_ns = kPeriodNs * i;
    events.push_back(ChangeOfTracing(at_ns, kTracingWarmsUp));
    events.push_back(Kernel(at_ns + 1 * kMs));
    events.push_back(ChangeOfTracing(at_ns + 2 * kMs, kTracingIsOn));
    events.push_back(Kernel(at_ns + 3 * kMs));
    events.push_back(ChangeOfTracing(at_ns + 4 * kMs, kTracingOff));
  }
  AddRun(batch, 1, 0, 5 * begin, events);
  AddCounters(batch, 1, 0, 5 * end, kJobStartNs + kPeriodNs * end);
  return batch;
}

uint64_t KernelsOf(Pipeline& pipeline) {
  lull::v1::ReportRequest request;
  request.set_phase(lull::v1::PHASE_ALL);
  return pipeline.Report(request).gpu().kernels();
}

TEST(ManyWindows, AllCountWithWhatRanInThem) {
  lull::v1::Hello hello = MakeHello(MakeJobId(1));
  hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_WINDOW);
  Pipeline pipeline(hello);
  pipeline.Apply(Windows(1, 0, kWindows));
  pipeline.Commit();
  EXPECT_EQ(KernelsOf(pipeline), kWindows);
  pipeline.Restart();
  pipeline.Apply(Windows(2, kWindows, kWindows + 100));
  pipeline.Commit();
  EXPECT_EQ(KernelsOf(pipeline), kWindows + 100);
}

}  // namespace
}  // namespace lull::test
