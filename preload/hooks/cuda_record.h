// What the recorders of the CUDA families share. All run under the Guard of the
// wrapper, after the original returned, and preserve errno.
#pragma once

#include "preload/autograd/backward.h"
#include "preload/hooks/cuda_call.h"
#include "preload/hooks/record.h"

namespace lull {

// What is particular to an event; the rest comes from the call.
struct EventParts {
  abi::EventType type;
  uint8_t flags;
  uint64_t arg0;
  uint64_t arg1;
  uint32_t arg2;
};

// A plain store in the thread's own ring, and no locked instruction on a counter that
// all threads share: 17.2 ns a launch instead of 18.1 (hook_bench).
inline void count_gpu_call(const CudaCall& call) {
  ThreadState& thread = t_thread;
  if (__builtin_expect(
          thread.generation != g_state->generation.load(std::memory_order_relaxed),
          0)) {
    abi::SegmentView(call.segment)
        .header()
        .ringless_gpu_calls.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  std::atomic<uint64_t>& calls = thread.ring->gpu_calls;
  calls.store(calls.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

inline uint32_t thinning(const CudaCall& call) {
  return abi::SegmentView(call.segment)
      .control()
      .thinning.load(std::memory_order_relaxed);
}

inline void commit(const CudaCall& call, const EventParts& parts, uint8_t flags,
                   abi::Ref py_stack, abi::Ref native) {
  abi::Event* event = reserve_event(call.segment);
  if (event == nullptr) return;
  event->start_ns = call.start_ns;
  event->duration_ns = call.end_ns - call.start_ns;
  event->arg0 = parts.arg0;
  event->arg1 = parts.arg1;
  event->py_stack = py_stack;
  event->native_stack = native;
  event->arg2 = parts.arg2;
  event->api = static_cast<uint16_t>(call.hook);
  event->type = parts.type;
  event->flags =
      static_cast<uint8_t>(parts.flags | flags | (call.failed ? abi::kFlagFailed : 0));
  commit_event();
}

// In a window of GPU tracing.
inline bool is_traced(const CudaCall& call) {
  return abi::SegmentView(call.segment)
             .header()
             .cupti_state.load(std::memory_order_relaxed) ==
         static_cast<uint32_t>(abi::CuptiState::kTracing);
}

// The operator that made a node has allocated nothing, or its line would be noted.
// `whole`: the whole Python stack if it was taken already, else 0.
__attribute__((cold, noinline)) void note_forward_of_call(const CudaCall& call,
                                                          abi::Ref whole);

// For calls that submit work in a window: what runs on the device, and the gaps before
// and after it, are told by line and by operator. The whole stacks, as far as the
// governor leaves them.
void commit_traced(const CudaCall& call, const EventParts& parts);

// For calls that do not block: the innermost Python frame alone, but in a window.
void commit_with_tip(const CudaCall& call, const EventParts& parts);

// For calls that may have blocked: the whole Python and native stacks, as far as
// the governor leaves them.
void commit_with_stacks(const CudaCall& call, const EventParts& parts);

}  // namespace lull
