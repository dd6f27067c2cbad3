// Kernel and graph launches: the hottest hooks. An event carries the innermost
// Python frame; a launch that comes late after the thread's previous one (the
// device may have run dry meanwhile) carries the whole stack, one in a window of GPU
// tracing the native one too. The governor leaves launches out between windows alone:
// in one they tell the lines of gaps and kernels, and the next window pays for them.
#include "preload/hooks/cuda_record.h"
#include "preload/steps/control_step.h"

namespace lull {
namespace {

struct Launched {
  const void* stream;
  const void* function;
};

inline Launched launched(const void* stream, const void* function) {
  return {stream, function};
}

// A failed call may have been given no configuration at all.
template <typename Config>
const void* stream_of(const Config* config) {
  return config != nullptr ? config->stream : nullptr;
}

__attribute__((noinline)) void record(const CudaCall& call, const Launched& launch) {
  ErrnoKeeper keeper;
  count_gpu_call(call);
  ThreadState& thread = t_thread;
  thread.watched = 1;
  uint64_t previous = thread.last_launch_ns;
  thread.last_launch_ns = call.end_ns;
  const bool traced = is_traced(call);
  const bool left_out = thinning(call) >= abi::kThinLaunches;
  if (traced || !left_out) {
    uint64_t pause = abi::SegmentView(call.segment)
                         .control()
                         .late_launch_ns.load(std::memory_order_relaxed);
    bool late = previous != 0 && call.start_ns > previous + pause &&
                !rested_since(call.segment, previous);
    uint8_t flags = late ? uint8_t{abi::kFlagLate} : uint8_t{0};
    EventParts parts = {abi::EventType::kLaunch, flags, bits(launch.stream),
                        bits(launch.function), 0};
    if (traced) {
      if (left_out) parts.flags |= abi::kFlagAlone;
      return commit_traced(call, parts);
    }
    abi::Ref python = late ? python_stack(call.segment) : python_tip(call.segment);
    if (forward_is_wanted(call.segment)) note_forward_of_call(call, late ? python : 0);
    commit(call, parts, 0, python, 0);
  } else if (has_ring()) {
    if (forward_is_wanted(call.segment)) note_forward_of_call(call, 0);
    std::atomic<uint64_t>& thinned = thread.ring->thinned_launches;
    thinned.store(thinned.load(std::memory_order_relaxed) + 1,
                  std::memory_order_relaxed);
  }
  account_self_sampled(call.end_ns);
}

}  // namespace

#define LULL_ON_sync(...)
#define LULL_ON_copy(...)
#define LULL_ON_memory(...)
#define LULL_ON_life(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)

#define LULL_ON_launch LULL_RUNTIME_WRAPPERS
LULL_RUNTIME_HOOKS(LULL_ROW)
#undef LULL_ON_launch

#define LULL_ON_launch LULL_DRIVER_WRAPPER
LULL_DRIVER_HOOKS(LULL_ROW)

}  // namespace lull
