// Device memory and pinned host memory: cudaMalloc, cudaFree and relatives. Many
// of them stop the whole device, so each takes the stacks of a sync.
#include <string.h>

#include "preload/hooks/cuda_record.h"
#include "preload/steps/control_step.h"

namespace lull {
namespace {

// Also in a control step: what is live is known after it.
inline char* segment_also_at_rest() {
  char* segment = recording_segment_or_start(Trigger::kGpuCall);
  return segment != nullptr ? segment : control_step_segment();
}
#undef LULL_SEGMENT
#define LULL_SEGMENT segment_also_at_rest()

struct Memory {
  const void* address;
  uint64_t bytes;
  uint8_t flags;
};

// What `out` points to can be read only after success.
struct Allocation {
  const void* out;
  uint64_t bytes;
  uint8_t flags;
};

struct PitchedAllocation {
  const void* out;
  const size_t* pitch;
  size_t height;
};

inline Allocation allocated(const void* out, size_t bytes) { return {out, bytes, 0}; }
inline Allocation pinned(const void* out, size_t bytes) {
  return {out, bytes, abi::kFlagPinned};
}
inline PitchedAllocation allocated_pitched(const void* out, const size_t* pitch,
                                           size_t height) {
  return {out, pitch, height};
}
inline Allocation allocated_array(const void* out, const ChannelFormat* format,
                                  size_t width, size_t height) {
  uint64_t element =
      format == nullptr
          ? 0
          : static_cast<uint64_t>(format->x + format->y + format->z + format->w) / 8;
  return {out, element * width * (height == 0 ? 1 : height), 0};
}
inline Memory pinned_at(const void* address, size_t bytes) {
  return {address, bytes, abi::kFlagPinned};
}
// Address space for memory that cuMemCreate has allocated: no bytes of its own.
inline Memory mapped_at(DevicePointer address) { return {as_pointer(address), 0, 0}; }
inline Memory freed(const void* address) { return {address, 0, abi::kFlagFree}; }
inline Memory unpinned(const void* address) {
  return {address, 0, abi::kFlagFree | abi::kFlagPinned};
}

void record(const CudaCall& call, const Memory& memory) {
  commit_with_stacks(call, {abi::EventType::kDeviceMemory, memory.flags,
                            bits(memory.address), memory.bytes, 0});
}

const void* pointee(const CudaCall& call, const void* out) {
  const void* address = nullptr;
  if (!call.failed && out != nullptr) memcpy(&address, out, sizeof address);
  return address;
}

void record(const CudaCall& call, const Allocation& allocation) {
  record(call,
         Memory{pointee(call, allocation.out), allocation.bytes, allocation.flags});
}

void record(const CudaCall& call, const PitchedAllocation& allocation) {
  bool known = !call.failed && allocation.pitch != nullptr;
  uint64_t bytes = known ? *allocation.pitch * allocation.height : 0;
  record(call, Memory{pointee(call, allocation.out), bytes, 0});
}

}  // namespace

#define LULL_ON_launch(...)
#define LULL_ON_sync(...)
#define LULL_ON_copy(...)
#define LULL_ON_life(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)

#define LULL_ON_memory LULL_RUNTIME_WRAPPERS
LULL_RUNTIME_HOOKS(LULL_ROW)
#undef LULL_ON_memory

#define LULL_ON_memory LULL_DRIVER_WRAPPER
LULL_DRIVER_HOOKS(LULL_ROW)

}  // namespace lull
