// Explicit synchronisations: the host stood still until the device was done.
#include "preload/hooks/cuda_record.h"

namespace lull {
namespace {

struct Synchronized {
  const void* handle;  // stream or event; none for a device or context
};

// All streams of the device, not one of them.
bool is_device_wide(abi::HookId hook) {
  return hook == abi::HookId::k_cudaDeviceSynchronize ||
         hook == abi::HookId::k_cudaThreadSynchronize ||
         hook == abi::HookId::k_cuCtxSynchronize ||
         hook == abi::HookId::k_cuCtxSynchronize_v2;
}

inline Synchronized synchronized(const void* handle) { return {handle}; }

void record(const CudaCall& call, const Synchronized& sync) {
  commit_with_stacks(call, {abi::EventType::kSync, 0, bits(sync.handle), 0, 0});
  if (call.failed) return;
  gpu_after_sync(call.segment, is_device_wide(call.hook), call.start_ns);
}

}  // namespace

#define LULL_ON_launch(...)
#define LULL_ON_copy(...)
#define LULL_ON_memory(...)
#define LULL_ON_life(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)

#define LULL_ON_sync LULL_RUNTIME_WRAPPERS
LULL_RUNTIME_HOOKS(LULL_ROW)
#undef LULL_ON_sync

#define LULL_ON_sync LULL_DRIVER_WRAPPER
LULL_DRIVER_HOOKS(LULL_ROW)

}  // namespace lull
