// A job of one process that allocates, frees and steps: events made by hand, and the
// collector's answer to `lull memory`.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "daemon/base/event_views.h"
#include "tests/daemon/collector/test_job.h"
#include "tests/daemon/query/pipeline.h"
#include "tests/daemon/units.h"

namespace lull::test {

inline constexpr int64_t kMiB = 1 << 20;
inline constexpr uint32_t kFree = 1, kFailed = 8, kBefore = 128;
inline constexpr TorchDevice kCuda0 = TorchCuda(0), kCuda1 = TorchCuda(1),
                             kCpu = TorchDevice::kCpu;

inline TestEvent Torch(uint64_t time_ns, TorchDevice device, uint64_t address,
                       uint64_t bytes, uint32_t python, uint32_t flags = 0) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_TORCH_MEMORY;
  event.api = kApiTorch;
  event.start_ns = time_ns;
  MemoryView{event}.set_address(address).set_bytes(bytes).set_device(device);
  event.python = python;
  event.flags = flags;
  return event;
}
inline TestEvent Reserved(uint64_t time_ns, TorchDevice device, uint64_t bytes) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_TORCH_RESERVED;
  event.start_ns = time_ns;
  ReservedView{event}.set_bytes(bytes).set_device(device);
  return event;
}
inline TestEvent Step(uint64_t start_ns, uint64_t end_ns, uint64_t number) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_STEP;
  event.start_ns = start_ns;
  event.duration_ns = end_ns - start_ns;
  StepView{event}.set_number(number).set_source(v1::STEP_SOURCE_OPTIMIZER);
  return event;
}
inline TestEvent Malloc(uint64_t time_ns, uint64_t address, uint64_t bytes,
                        uint32_t python, uint32_t flags = 0) {
  TestEvent event;
  event.type = v1::EVENT_TYPE_DEVICE_MEMORY;
  event.api = (flags & kFree) != 0 ? kApiFree : kApiMalloc;
  event.start_ns = time_ns;
  event.duration_ns = 1000;
  MemoryView{event}.set_address((flags & kFailed) != 0 ? 0 : address).set_bytes(bytes);
  event.python = python;
  event.flags = flags;
  return event;
}

// One process, one batch for each call of Feed.
class MemoryJob {
 public:
  MemoryJob() : pipeline_(MakeHello(MakeJobId(1))) {}

  void Feed(uint32_t ring, const std::vector<TestEvent>& events, uint64_t as_of_ns) {
    lull::v1::Batch batch = Begin();
    Add(batch, ring, events);
    Send(batch, as_of_ns);
  }
  lull::v1::Batch Begin() {
    lull::v1::Batch batch;
    batch.set_sequence(++sequence_);
    if (sequence_ == 1) {
      *batch.add_processes() = MakeProcess(1, 101, 0);
      AddStacks(batch, 1);
    }
    return batch;
  }
  void Add(lull::v1::Batch& batch, uint32_t ring,
           const std::vector<TestEvent>& events) {
    AddRun(batch, 1, ring, ends_[ring], events);
    ends_[ring] += events.size();
  }
  void Send(lull::v1::Batch& batch, uint64_t as_of_ns) {
    AddCounters(batch, 1, 0, ends_[0], as_of_ns);
    pipeline_.Apply(batch);
    pipeline_.Commit();
  }
  void Restart() { pipeline_.Restart(); }

  lull::v1::Memory Memory(const lull::v1::ReportRequest& request = {}) {
    return pipeline_.Memory(request);
  }
  // Of all phases.
  lull::v1::Allocations Allocations(lull::v1::ReportRequest request = {}) {
    request.set_phase(lull::v1::PHASE_ALL);
    return pipeline_.Report(request).allocations();
  }

 private:
  Pipeline pipeline_;
  uint64_t sequence_ = 0;
  std::map<uint32_t, uint64_t> ends_;
};

}  // namespace lull::test
