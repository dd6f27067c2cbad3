// How long kernels ran in a range that cuts the seconds by which device time is kept.
#include <gtest/gtest.h>

#include <vector>

#include "daemon/base/gpu_event_views.h"
#include "tests/daemon/collector/test_gpu.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {
namespace {

class KernelTime : public ::testing::Test {
 protected:
  static constexpr uint64_t kActive = 2, kOff = 0;
  static constexpr uint64_t kEndMs = 4000;

  static TestEvent Change(uint64_t at_ms, uint64_t state) {
    TestEvent event;
    event.type = lull::v1::EVENT_TYPE_GPU_TRACING;
    event.start_ns = kJobStartNs + at_ms * kMs;
    TracingView{event}.set_state(state);
    return event;
  }

  static TestEvent Operation(uint32_t type, uint64_t at_ms, uint64_t duration_ms) {
    TestEvent event;
    event.type = type;
    event.native = 1;  // a stream
    if (type == lull::v1::EVENT_TYPE_GPU_KERNEL) event.python = 1;
    event.start_ns = kJobStartNs + at_ms * kMs;
    event.duration_ns = duration_ms * kMs;
    return event;
  }
  static TestEvent Kernel(uint64_t at_ms, uint64_t duration_ms) {
    return Operation(lull::v1::EVENT_TYPE_GPU_KERNEL, at_ms, duration_ms);
  }
  static TestEvent Copy(uint64_t at_ms, uint64_t duration_ms) {
    return Operation(lull::v1::EVENT_TYPE_GPU_COPY, at_ms, duration_ms);
  }

  // A process with a device of its own, traced for four seconds.
  void Add(std::vector<TestEvent> operations) {
    const uint64_t key = ++processes_;
    *batch_.add_processes() = MakeProcess(key, 100 + static_cast<uint32_t>(key), 0);
    AddStacks(batch_, key);
    AddGpu(batch_, key);
    std::vector<TestEvent> events = {Change(0, kActive)};
    events.insert(events.end(), operations.begin(), operations.end());
    events.push_back(Change(kEndMs, kOff));
    AddRun(batch_, key, 0, 0, events);
    AddCounters(batch_, key, 0, events.size(), kJobStartNs + kEndMs * kMs);
    auto* end = batch_.add_process_ends();
    end->set_process_key(key);
    end->set_end_ns(kJobStartNs + kEndMs * kMs);
  }

  lull::v1::Gpu Between(uint64_t since_ms, uint64_t until_ms) {
    if (!applied_) {
      batch_.set_sequence(1);
      pipeline_.Apply(batch_);
      pipeline_.Commit();
      applied_ = true;
    }
    lull::v1::ReportRequest request;
    request.set_phase(lull::v1::PHASE_ALL);
    if (since_ms != 0) request.set_since_ns(since_ms * kMs);
    request.set_until_ns(until_ms * kMs);
    return pipeline_.Report(request).gpu();
  }

 private:
  static lull::v1::Hello Hello() {
    lull::v1::Hello hello = MakeHello(MakeJobId(1));
    hello.mutable_job()->set_gpu_mode(lull::v1::GPU_MODE_CONTINUOUS);
    return hello;
  }

  Pipeline pipeline_{Hello()};
  lull::v1::Batch batch_;
  uint64_t processes_ = 0;
  bool applied_ = false;
};

TEST_F(KernelTime, OfWholeSecondsIsExact) {
  Add({Kernel(10, 100), Copy(300, 50), Kernel(1500, 200), Kernel(3990, 5)});
  const lull::v1::Gpu gpu = Between(0, 2000);
  EXPECT_EQ(gpu.busy_ns(), 350 * kMs);
  EXPECT_EQ(gpu.kernel_ns(), 300 * kMs);
}

TEST_F(KernelTime, OfAPartOfASecondIsTheirShareOfItsBusyTime) {
  Add({Kernel(10, 100), Copy(300, 50), Kernel(3990, 5)});
  const lull::v1::Gpu gpu = Between(0, 500);
  EXPECT_EQ(gpu.busy_ns(), 150 * kMs);
  EXPECT_NEAR(static_cast<double>(gpu.kernel_ns()), 100.0 * kMs, 1'000);
}

TEST_F(KernelTime, IsNoneWhereTheDeviceWasIdle) {
  Add({Kernel(10, 100), Kernel(3990, 5)});
  EXPECT_EQ(Between(200, 700).kernel_ns(), 0u);
  EXPECT_EQ(Between(0, 50).kernel_ns(), 40 * kMs);
}

// Nor do the copies of one second make kernel time of what was before the range.
TEST_F(KernelTime, IsThatOfEachSecond) {
  Add({Kernel(100, 300), Copy(1000, 900), Kernel(2600, 300), Kernel(3990, 5)});
  const lull::v1::Gpu gpu = Between(500, 2500);
  EXPECT_EQ(gpu.busy_ns(), 900 * kMs);
  EXPECT_EQ(gpu.kernel_ns(), 0u);
}

// Nobody else's copies make kernel time of what a device did before or after the range.
TEST_F(KernelTime, IsThatOfEachDevice) {
  Add({Kernel(600, 300), Kernel(3990, 5)});
  Add({Copy(0, 400), Kernel(3990, 5)});
  const lull::v1::Gpu gpu = Between(0, 500);
  EXPECT_EQ(gpu.busy_ns(), 400 * kMs);
  EXPECT_EQ(gpu.kernel_ns(), 0u);
}

}  // namespace
}  // namespace lull::test
