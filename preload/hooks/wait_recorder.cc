#include "preload/hooks/wait_recorder.h"

#include "preload/autograd/backward.h"
#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/scopes/open_scopes.h"
#include "preload/stacks/stacks.h"
#include "preload/support/loaded_object.h"

namespace lull {
namespace {

// Set while recording starts, before the mode says so; read afterwards.
LoadedObject g_interpreter = {};

bool is_interpreter(const void* address) {
  auto at = reinterpret_cast<uintptr_t>(address);
  return at >= g_interpreter.text_begin && at < g_interpreter.text_end;
}

// A condition that a library waits for below a line of Python: only its native stack
// says whether that is a collective of c10d, which another rank may hold up.
bool is_of_a_library(const Wait& wait) {
  const bool condition = wait.hook == abi::HookId::k_pthread_cond_wait ||
                         wait.hook == abi::HookId::k_pthread_cond_timedwait ||
                         wait.hook == abi::HookId::k_pthread_cond_clockwait;
  return condition && !is_interpreter(wait.caller);
}

void add_short_wait(char* segment, uint64_t duration_ns) {
  ThreadState& thread = t_thread;
  if (thread.generation != g_state->generation.load(std::memory_order_relaxed)) {
    ErrnoKeeper errno_keeper;
    if (!take_ring(segment)) return;
  }
  abi::RingHeader& ring = *thread.ring;  // its owner is the only writer
  ring.short_waits.store(ring.short_waits.load(std::memory_order_relaxed) + 1,
                         std::memory_order_relaxed);
  ring.short_waits_ns.store(
      ring.short_waits_ns.load(std::memory_order_relaxed) + duration_ns,
      std::memory_order_relaxed);
}

// Stacks first: nothing may come between reserve_event() and commit_event().
void add_event(char* segment, const Wait& wait) {
  ErrnoKeeper errno_keeper;
  abi::Ref python = python_stack(segment);
  uint32_t thinning =
      abi::SegmentView(segment).control().thinning.load(std::memory_order_relaxed);
  // Between two nodes the engine waits for whoever calls it next, which is no work of
  // the one that called last.
  if (is_backward_without_node(segment, python)) python = 0;
  bool wanted = python == 0 || is_backward(segment, python) || is_of_a_library(wait);
  bool thinned = wanted && thinning >= abi::kThinNativeStacks;
  abi::Ref native = wanted && !thinned ? native_stack(segment, 0) : 0;
  abi::Event* event = reserve_event(segment);
  if (event == nullptr) return;
  event->start_ns = wait.start_ns;
  event->duration_ns = wait.end_ns - wait.start_ns;
  event->arg0 = wait.descriptor;
  event->arg1 = static_cast<uint64_t>(wait.result);
  event->py_stack = python;
  event->native_stack = native;
  event->arg2 =
      is_in_data_scope(g_state->generation.load(std::memory_order_relaxed)) ? 1 : 0;
  event->api = static_cast<uint16_t>(wait.hook);
  event->type = abi::EventType::kHostWait;
  event->flags = (is_interpreter(wait.caller) ? abi::kFlagFromPython : 0) |
                 (wait.result < 0 ? abi::kFlagFailed : 0) |
                 (thinned ? abi::kFlagStackThinned : 0);
  commit_event();
}

}  // namespace

std::atomic<bool> g_python_pending{false};

void wait_recorder_prepare() {
  const PythonApi* python = python_api();
  if (python == nullptr) return;
  find_object(reinterpret_cast<const void*>(python->is_initialized), &g_interpreter);
  g_python_pending.store(true, std::memory_order_relaxed);
}

bool judge_wait() {
  ErrnoKeeper errno_keeper;
  ThreadState& thread = t_thread;
  if (g_python_pending.load(std::memory_order_relaxed)) {
    OwnCall own(__builtin_frame_address(0));
    if (!own.nested() && python_poll_install()) {
      g_python_pending.store(false, std::memory_order_relaxed);
    }
  }
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (thread.judged != generation) {
    thread.judged = generation;
    if (has_python() && python_is_main_thread()) thread.watched = 1;
  }
  return thread.watched != 0;
}

void record_wait(const Wait& wait) {
  char* segment = recording_segment();
  if (segment == nullptr) return;
  uint64_t threshold = abi::SegmentView(segment).control().wait_threshold_ns.load(
      std::memory_order_relaxed);
  uint64_t duration = wait.end_ns - wait.start_ns;
  if (duration < threshold) {
    add_short_wait(segment, duration);
    account_self_sampled(wait.end_ns);
  } else {
    add_event(segment, wait);
    account_self(wait.end_ns);
  }
}

}  // namespace lull
