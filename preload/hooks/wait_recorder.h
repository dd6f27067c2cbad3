// What the host-wait hooks share: whose waits count, and one wait's way into the
// ring.
//
// Only threads that the GPU waits for are watched: those that launch work, and the
// main thread of Python. Waits under ControlBlock::wait_threshold_ns are summed in
// the ring header, longer ones become events.
//
// These functions are async-signal-safe in libc, and cancellation points. So is
// what stands here: no lock, no malloc, errno as the original left it; when the
// original is unwound (cancellation, longjmp), nothing needs undoing (guard.h).
#pragma once

#include <cstdint>

#include "preload/abi/hook_list.h"
#include "preload/hooks/record.h"

namespace lull {

// Cold, whenever recording starts: where the interpreter's code lies.
void wait_recorder_prepare();

// Cold half of wait_is_watched(): judges a thread once for each segment, and lets
// python/ install its GC callback while that is still to be done.
__attribute__((cold, noinline)) bool judge_wait();

struct Wait {
  uint64_t start_ns;
  uint64_t end_ns;
  int64_t result;
  uint64_t descriptor;  // 0 where the function has none
  void* caller;         // return address of the hook
  abi::HookId hook;
};

// The wait of a watched thread has ended. Preserves errno.
void record_wait(const Wait& wait);

extern std::atomic<bool> g_python_pending __attribute__((visibility("hidden")));

// All that an unwatched call pays: 0.2 ns in an inert process, 0.5 ns while
// recording. A watched one pays two clock reads and 3.4 ns as long as it is short
// (tests/bench/wait_hook_bench.cc, EPYC).
inline bool wait_is_watched() {
  if (__builtin_expect(recording_segment() == nullptr, 1)) return false;
  const ThreadState& thread = t_thread;
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (__builtin_expect(thread.judged != generation ||
                           g_python_pending.load(std::memory_order_relaxed),
                       0)) {
    return judge_wait();
  }
  return thread.watched != 0;
}

template <abi::HookId hook, typename First, typename... Rest>
uint64_t wait_descriptor(First first, Rest...) {
  constexpr bool kHasOne =
      hook >= abi::HookId::k_epoll_wait && hook <= abi::HookId::k_recvmsg;
  if constexpr (kHasOne) {
    return static_cast<uint64_t>(first);
  } else {
    return 0;
  }
}

// Calls the original once and records how long it took. `frame` and `caller` are
// those of the hook.
template <abi::HookId hook, typename Result, typename... Parameters>
inline Result measure_wait(void* frame, void* caller, Result (*original)(Parameters...),
                           Parameters... arguments) {
  Guard guard(frame, Layer::kWait);
  if (!guard.outermost()) return original(arguments...);
  uint64_t start = monotonic_ns();
  Result result = original(arguments...);
  uint64_t end = monotonic_ns();
  guard.own_work(frame);
  record_wait({start, end, static_cast<int64_t>(result),
               wait_descriptor<hook>(arguments...), caller, hook});
  return result;
}

}  // namespace lull
