// Collects what was read into one v1::Batch.
//
// Runs of one ring that follow each other become one RingBatch. Who adds stacks,
// kernels or processes remembers them, because they count as defined only once the
// batch is in the spool.
#pragma once

#include <google/protobuf/arena.h>

#include <cstdint>
#include <unordered_map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/types/span.h"
#include "ingest.pb.h"
#include "preload/abi/event.h"

namespace lull::relay {

// A batch is closed when it is about so large; a collector takes 64 MiB.
inline constexpr size_t kMaxBatchBytes = 1u << 20;

class BatchBuilder {
 public:
  BatchBuilder();
  BatchBuilder(const BatchBuilder&) = delete;
  BatchBuilder& operator=(const BatchBuilder&) = delete;

  // `count` consecutive events from `first_position` on, all of one thread. The
  // events are copied; their references must be checked by now.
  void AddEvents(uint64_t process_key, uint32_t ring, uint64_t first_position,
                 const abi::Event* events, size_t count, uint32_t tid);
  void AddStack(uint64_t process_key, v1::StackDef stack);
  // One whose frames are those of these numbers; AddFrame() gives them out.
  void AddStackOfFrames(uint64_t process_key, v1::StackDef stack,
                        absl::Span<const uint32_t> frame_numbers);
  // Its number in this batch.
  uint32_t AddFrame(uint64_t process_key, v1::Frame frame);
  void AddKernel(uint64_t process_key, v1::KernelDef kernel);
  void AddGpuStream(uint64_t process_key, const v1::GpuStreamDef& stream);
  void AddGpuDevice(uint64_t process_key, v1::GpuDeviceDef device);
  void AddApi(v1::ApiName api);
  void AddProcess(const v1::ProcessInfo& process);
  // Replaces what an earlier call said about the same process.
  void AddCounters(v1::ProcessCounters counters);
  void AddProcessEnd(uint64_t process_key, uint64_t end_ns);
  void AddStretch(const v1::ArmedStretch& stretch);
  void SetJobEnd(const v1::JobEnd& end);

  bool empty() const { return empty_; }
  size_t events() const { return events_; }
  size_t approximate_bytes() const { return bytes_; }

  v1::Batch* batch() { return batch_; }
  // Makes room for the next batch.
  void Reset();

 private:
  struct OpenRun {
    v1::EventColumns* columns;
    uint64_t next_position;
    uint64_t last_start_ns;
  };
  OpenRun& RunFor(uint64_t process_key, uint32_t ring, uint64_t position,
                  uint64_t start_ns);
  v1::Batch::Stacks* StacksOf(uint64_t process_key);
  v1::Batch::Gpu* GpuOf(uint64_t process_key);

  google::protobuf::Arena arena_;
  v1::Batch* batch_ = nullptr;
  absl::flat_hash_map<std::pair<uint64_t, uint32_t>, OpenRun> runs_;  // key, ring
  std::unordered_map<uint64_t, v1::Batch::Stacks*> stacks_;
  std::unordered_map<uint64_t, v1::Batch::Gpu*> gpus_;
  std::unordered_map<uint64_t, v1::ProcessCounters*> counters_;
  size_t events_ = 0;
  size_t bytes_ = 0;
  bool empty_ = true;
};

}  // namespace lull::relay
