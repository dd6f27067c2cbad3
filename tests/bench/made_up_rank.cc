#include "tests/bench/made_up_rank.h"

#include <algorithm>
#include <string>

#include "daemon/base/event_views.h"
#include "daemon/base/gpu_event_views.h"
#include "tests/daemon/collector/test_gpu.h"

namespace lull::test {
namespace {

TestEvent Told(uint32_t type, uint64_t at_ns) {
  TestEvent event;
  event.type = type;
  event.start_ns = at_ns;
  TracingView{event}.set_state(v1::TRACING_STATE_ACTIVE);
  return event;
}

}  // namespace

size_t MadeUpRank::AddTo(lull::v1::Batch& batch, size_t count) {
  std::vector<TestEvent> rings[kRings];
  if (traced_ && step_ == 0) rings[kCupti].push_back(Told(15, now_));
  size_t made = 0;
  for (; made < count; made = rings[0].size() + rings[1].size() + rings[2].size()) {
    std::vector<TestEvent>& ring = rings[step_ / 90 % 2];
    ring.push_back(Next());
    bool submits = ring.back().type == v1::EVENT_TYPE_LAUNCH;
    if (traced_ && submits) AddRecords(ring.back(), rings[kCupti]);
  }
  // What ran is known half a batch later than what was called.
  if (traced_) rings[kCupti].push_back(Told(17, now_));
  for (uint32_t ring = 0; ring < kRings; ++ring) {
    if (rings[ring].empty()) continue;
    AddRun(batch, key_, ring, position_[ring], rings[ring]);
    position_[ring] += rings[ring].size();
  }
  if (traced_) AddCounters(batch, key_, 0, position_[0], now_);
  return made;
}

void MadeUpRank::AddRecords(const TestEvent& launch, std::vector<TestEvent>& ring) {
  TestEvent call;
  call.type = v1::EVENT_TYPE_API_CALL;
  call.api = kApiCudaLaunch;
  call.start_ns = launch.start_ns + 400;
  call.duration_ns = launch.duration_ns - 800;
  ApiCallView{call}
      .set_caller(ThreadId{launch.tid})
      .set_correlation(CorrelationId{++correlation_});
  call.tid = 1002;
  TestEvent kernel = call;
  kernel.type = v1::EVENT_TYPE_GPU_KERNEL;
  kernel.api = 0;
  kernel.python = 1 + correlation_ % kMadeUpKernels;
  kernel.native = 1;
  kernel.start_ns =
      std::max(free_ns_, call.start_ns + call.duration_ns + 1000 + random_() % 2048);
  kernel.duration_ns = 8'000 + random_() % 32'768;
  OperationView{kernel}.set_graph(0);
  free_ns_ = kernel.start_ns + kernel.duration_ns;
  ring.push_back(call);
  ring.push_back(kernel);
}

TestEvent MadeUpRank::Next() {
  uint64_t step = step_++;
  now_ += pace_.gap_ns + random_() % pace_.jitter_ns;
  TestEvent event;
  event.start_ns = now_;
  event.tid = 1000 + static_cast<uint32_t>(step / 90 % 2);
  event.python = 1 + static_cast<uint32_t>(step % 90 % (kMadeUpStacks / 2));
  switch (step % 36) {
    case 30:
      event.type = v1::EVENT_TYPE_SYNC;
      event.api = kApiSync;
      event.native = kMadeUpStacks / 2 + 1;
      event.duration_ns = 200'000 + random_() % 400'000;
      CopyCallView{event}.set_stream(0x55d0'1000);
      break;
    case 31:
    case 32:
    case 33:
    case 34: {
      event.type = v1::EVENT_TYPE_TORCH_MEMORY;
      event.api = kApiTorch;
      event.native = kMadeUpStacks / 2 + 1 + static_cast<uint32_t>(step % 50);
      bool free = step % 36 % 2 == 0;
      event.flags = free ? 1 : 0;
      if (!free) address_ = 0x7f12'0000'0000 + 512 * (random_() % 4000);
      MemoryView{event}
          .set_address(address_)
          .set_bytes(512 * (1 + step % 70))
          .set_device(TorchCuda(0));
      break;
    }
    case 35:
      event.type = v1::EVENT_TYPE_GC_PAUSE;
      event.duration_ns = 1'000'000 + random_() % 100'000;
      GcPauseView{event}
          .set_collected(random_() % 100)
          .set_generation(step % 108 == 35 ? 1 : 0);
      break;
    default:
      event.type = v1::EVENT_TYPE_LAUNCH;
      event.api = kApiLaunch;
      event.duration_ns = 4'000 + random_() % 2048;
      LaunchView{event}
          .set_stream(0x55d0'1000)
          .set_function(0x7f12'3456'0000 + 64 * (step % 70));
  }
  return event;
}

void AddMadeUpKernels(lull::v1::Batch& batch, uint64_t key) {
  AddGpu(batch, key);
  lull::v1::Batch::Gpu& gpu = *batch.mutable_gpus(batch.gpus_size() - 1);
  gpu.clear_kernels();
  for (uint32_t ref = 1; ref <= kMadeUpKernels; ++ref) {
    lull::v1::KernelDef* kernel = gpu.add_kernels();
    kernel->set_ref(ref);
    kernel->set_name("void at::native::vectorized_elementwise_kernel<" +
                     std::to_string(ref / 3) + ">(int, float*)");
    kernel->set_grid_x(ref);
    kernel->set_block_x(256);
  }
}

void AddMadeUpIdentity(lull::v1::Batch& batch, uint64_t key) {
  *batch.add_processes() =
      MakeProcess(key, 100 + static_cast<uint32_t>(key), static_cast<int32_t>(key) - 1);
  auto* stacks = batch.add_stacks();
  stacks->set_process_key(key);
  for (uint32_t ref = 1; ref <= kMadeUpStacks; ++ref) {
    lull::v1::StackDef* stack = stacks->add_stacks();
    stack->set_ref(ref);
    stack->set_native(ref > kMadeUpStacks / 2);
    for (int depth = 0; depth < 20; ++depth) {
      lull::v1::Frame* frame = stack->add_frames();
      frame->set_function("function_" + std::to_string(depth));
      frame->set_file("/home/u/model.py");
      frame->set_line(static_cast<int32_t>(ref * 10 + static_cast<uint32_t>(depth)));
    }
  }
  AddCounters(batch, key, 0, 0, 1);
}

}  // namespace lull::test
