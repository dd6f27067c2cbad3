// GPU truth, as the rest of the shim sees it: when to let CUPTI be looked after.
//
// Nothing here runs by itself. A CUDA hook has read the clock anyway; if that is past
// a deadline it calls gpu_poll(), which does whatever is due: start or stop a window,
// flush, decode what waits. While nothing is due a hook pays one load and a compare.
// All of it under the hook's Guard.
#pragma once

#include <atomic>
#include <cstdint>

namespace lull {

// UINT64_MAX: never (not recording, given up).
extern std::atomic<uint64_t> g_gpu_deadline __attribute__((visibility("hidden")));

inline bool gpu_is_due(uint64_t now) {
  return __builtin_expect(now >= g_gpu_deadline.load(std::memory_order_relaxed), 0);
}

// Before the original of a CUDA call. Preserves errno.
__attribute__((cold, noinline)) void gpu_poll(char* segment);

// CUPTI is tracing, or has something left that is to be collected.
extern std::atomic<uint32_t> g_gpu_restless __attribute__((visibility("hidden")));

inline bool gpu_is_restless() {
  return __builtin_expect(g_gpu_restless.load(std::memory_order_relaxed) != 0, 0);
}

// Before the original of a CUDA call that is not recorded: in a process that was put
// to sleep, does what gpu_poll() would, which is to end tracing. Preserves errno.
__attribute__((cold, noinline)) void gpu_settle();

// When recording starts, with a segment that a relay has accepted.
void gpu_prepare(char* segment);

// A training step has ended, and the next begins. Call on the thread that trains, with
// the same guarantees as a CUDA hook.
void gpu_step_boundary(char* segment);

// Something waits for the device to be idle, or for an occasion to flush.
extern std::atomic<uint32_t> g_gpu_wants_sync __attribute__((visibility("hidden")));

__attribute__((cold, noinline)) void gpu_synchronized(char* segment, bool whole_device,
                                                      uint64_t since_ns);

// After the original of a synchronising CUDA call, which succeeded. whole_device: all
// work of the device that was submitted before the call, which was at since_ns, is
// done.
inline void gpu_after_sync(char* segment, bool whole_device, uint64_t since_ns) {
  if (__builtin_expect(g_gpu_wants_sync.load(std::memory_order_relaxed) != 0, 0)) {
    gpu_synchronized(segment, whole_device, since_ns);
  }
}

}  // namespace lull
