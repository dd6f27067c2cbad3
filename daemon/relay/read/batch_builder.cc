#include "daemon/relay/read/batch_builder.h"

namespace lull::relay {
namespace {

// An event takes 25 to 60 bytes on the wire.
constexpr size_t kEventBytes = 48;
// What takes the place of a return address.
constexpr size_t kFrameBytes = 256;
template <typename Column, typename Value>
void Fill(Column* column, const abi::Event* events, size_t count, Value value) {
  int old = column->size();
  column->Reserve(old + static_cast<int>(count));
  auto* out = column->AddNAlreadyReserved(static_cast<int>(count));
  for (size_t i = 0; i < count; ++i) out[i] = value(events[i]);
}

google::protobuf::ArenaOptions Blocks() {
  google::protobuf::ArenaOptions options;
  options.start_block_size = 64 << 10;
  options.max_block_size = 1 << 20;
  return options;
}

}  // namespace

BatchBuilder::BatchBuilder() : arena_(Blocks()) { Reset(); }

void BatchBuilder::Reset() {
  runs_.clear();
  stacks_.clear();
  gpus_.clear();
  counters_.clear();
  arena_.Reset();
  batch_ = google::protobuf::Arena::CreateMessage<lull::v1::Batch>(&arena_);
  events_ = 0;
  bytes_ = 0;
  empty_ = true;
}

BatchBuilder::OpenRun& BatchBuilder::RunFor(uint64_t process_key, uint32_t ring,
                                            uint64_t position, uint64_t start_ns) {
  OpenRun& run = runs_[{process_key, ring}];
  if (run.columns != nullptr && run.next_position == position) return run;
  lull::v1::RingBatch* ring_batch = batch_->add_rings();
  ring_batch->set_process_key(process_key);
  ring_batch->set_ring(ring);
  run.columns = ring_batch->mutable_events();
  run.columns->set_first_position(position);
  run.columns->set_base_ns(start_ns);
  run.next_position = position;
  run.last_start_ns = start_ns;
  bytes_ += 64;
  return run;
}

void BatchBuilder::AddEvents(uint64_t process_key, uint32_t ring,
                             uint64_t first_position, const abi::Event* events,
                             size_t count, uint32_t tid) {
  if (count == 0) return;
  OpenRun& run = RunFor(process_key, ring, first_position, events[0].start_ns);
  lull::v1::EventColumns& columns = *run.columns;
  uint64_t last = run.last_start_ns;
  Fill(columns.mutable_start_delta_ns(), events, count, [&last](const abi::Event& e) {
    int64_t delta = static_cast<int64_t>(e.start_ns - last);
    last = e.start_ns;
    return delta;
  });
  using E = abi::Event;
  Fill(columns.mutable_duration_ns(), events, count,
       [](const E& e) { return e.duration_ns; });
  Fill(columns.mutable_type(), events, count,
       [](const E& e) { return static_cast<uint32_t>(e.type); });
  Fill(columns.mutable_flags(), events, count, [](const E& e) { return e.flags; });
  Fill(columns.mutable_api(), events, count, [](const E& e) { return e.api; });
  Fill(columns.mutable_python_stack(), events, count,
       [](const E& e) { return e.py_stack; });
  Fill(columns.mutable_native_stack(), events, count,
       [](const E& e) { return e.native_stack; });
  Fill(columns.mutable_arg0(), events, count, [](const E& e) { return e.arg0; });
  Fill(columns.mutable_arg1(), events, count, [](const E& e) { return e.arg1; });
  Fill(columns.mutable_arg2(), events, count, [](const E& e) { return e.arg2; });
  Fill(columns.mutable_tid(), events, count, [tid](const E&) { return tid; });
  run.last_start_ns = last;
  run.next_position = first_position + count;
  events_ += count;
  bytes_ += count * kEventBytes;
  empty_ = false;
}

lull::v1::Batch::Stacks* BatchBuilder::StacksOf(uint64_t process_key) {
  lull::v1::Batch::Stacks*& stacks = stacks_[process_key];
  if (stacks == nullptr) {
    stacks = batch_->add_stacks();
    stacks->set_process_key(process_key);
  }
  empty_ = false;
  return stacks;
}

void BatchBuilder::AddStack(uint64_t process_key, lull::v1::StackDef stack) {
  AddStackOfFrames(process_key, std::move(stack), {});
}

void BatchBuilder::AddStackOfFrames(uint64_t process_key, lull::v1::StackDef stack,
                                    absl::Span<const uint32_t> frame_numbers) {
  lull::v1::Batch::Stacks* stacks = StacksOf(process_key);
  if (!frame_numbers.empty() || stacks->depths_size() > 0) {
    // Those before it have their own.
    stacks->mutable_depths()->Resize(stacks->stacks_size(), 0);
    stacks->add_depths(static_cast<uint32_t>(frame_numbers.size()));
    stacks->mutable_frame_numbers()->Add(frame_numbers.begin(), frame_numbers.end());
  }
  bytes_ += stack.ByteSizeLong() + 8 + 2 * frame_numbers.size() +
            kFrameBytes * static_cast<size_t>(stack.return_addresses_size());
  *stacks->add_stacks() = std::move(stack);
}

uint32_t BatchBuilder::AddFrame(uint64_t process_key, lull::v1::Frame frame) {
  bytes_ += frame.ByteSizeLong() + 8;
  auto* frames = StacksOf(process_key)->mutable_frames();
  *frames->Add() = std::move(frame);
  return static_cast<uint32_t>(frames->size() - 1);
}

lull::v1::Batch::Gpu* BatchBuilder::GpuOf(uint64_t process_key) {
  lull::v1::Batch::Gpu*& gpu = gpus_[process_key];
  if (gpu == nullptr) {
    gpu = batch_->add_gpus();
    gpu->set_process_key(process_key);
  }
  empty_ = false;
  return gpu;
}

void BatchBuilder::AddKernel(uint64_t process_key, lull::v1::KernelDef kernel) {
  bytes_ += kernel.ByteSizeLong() + 8;
  *GpuOf(process_key)->add_kernels() = std::move(kernel);
}

void BatchBuilder::AddGpuStream(uint64_t process_key,
                                const lull::v1::GpuStreamDef& stream) {
  bytes_ += stream.ByteSizeLong() + 8;
  *GpuOf(process_key)->add_streams() = stream;
}

void BatchBuilder::AddGpuDevice(uint64_t process_key, lull::v1::GpuDeviceDef device) {
  bytes_ += device.ByteSizeLong() + 8;
  *GpuOf(process_key)->add_devices() = std::move(device);
}

void BatchBuilder::AddApi(lull::v1::ApiName api) {
  bytes_ += api.ByteSizeLong() + 8;
  *batch_->add_apis() = std::move(api);
  empty_ = false;
}

void BatchBuilder::AddProcess(const lull::v1::ProcessInfo& process) {
  bytes_ += process.ByteSizeLong() + 8;
  *batch_->add_processes() = process;
  empty_ = false;
}

void BatchBuilder::AddCounters(lull::v1::ProcessCounters counters) {
  bytes_ += counters.ByteSizeLong() + 8;
  lull::v1::ProcessCounters*& slot = counters_[counters.process_key()];
  if (slot == nullptr) slot = batch_->add_counters();
  *slot = std::move(counters);
  empty_ = false;
}

void BatchBuilder::AddProcessEnd(uint64_t process_key, uint64_t end_ns) {
  lull::v1::Batch::ProcessEnd* end = batch_->add_process_ends();
  end->set_process_key(process_key);
  end->set_end_ns(end_ns);
  empty_ = false;
}

void BatchBuilder::AddStretch(const lull::v1::ArmedStretch& stretch) {
  *batch_->add_stretches() = stretch;
  empty_ = false;
}

void BatchBuilder::SetJobEnd(const lull::v1::JobEnd& end) {
  *batch_->mutable_job_end() = end;
  empty_ = false;
}

}  // namespace lull::relay
