// Part of the shim in a library of its own, to be loaded into a real interpreter
// (puppets/probe.py): stacks/, python/ and, in the variant to be preloaded,
// hooks/torch_memory.cc. What they need of the rest is replaced here by the simplest
// thing that does: a private segment, and rings that are never given back.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "preload/cupti/gpu.h"
#include "preload/entry/settings.h"
#include "preload/entry/state.h"
#include "preload/python/python.h"
#include "preload/python/step_hook.h"
#include "preload/ring/writer.h"
#include "preload/stacks/interning.h"
#include "preload/stacks/stacks.h"
#include "preload/support/clock.h"

namespace lull {

namespace {
State g_probe_state;
std::atomic<uint32_t> g_next_ring;
std::atomic<uint32_t> g_next_chunk;
std::atomic<uint32_t> g_start_attempts;
}  // namespace
State* g_state = &g_probe_state;
constinit thread_local ThreadState t_thread
    __attribute__((tls_model("initial-exec"))) = {};

bool take_ring(char* segment) {
  abi::SegmentView view(segment);
  uint32_t ring = g_next_ring.fetch_add(1);
  if (ring >= abi::kMaxRings) return false;
  t_thread.generation = g_state->generation.load();
  t_thread.ring = &view.ring(ring);
  t_thread.ring_index = ring;
  t_thread.head = 0;
  return open_chunk(segment);
}

// As long as there are any; nobody reads, and none is used again.
bool open_chunk(char* segment) {
  uint32_t id = g_next_chunk.fetch_add(1);
  if (id >= abi::kPoolChunks) return false;
  abi::SegmentView view(segment);
  uint64_t number = t_thread.head / abi::kChunkEvents;
  view.table(t_thread.ring_index)[number % abi::kRingChunks] =
      static_cast<abi::ChunkId>(id);
  t_thread.next = view.chunk(static_cast<abi::ChunkId>(id));
  t_thread.end = t_thread.next + abi::kChunkEvents;
  return true;
}

void show_python_state(uintptr_t state) { t_thread.python_state = state; }

bool open_chunk_or_lose(char* segment) { return open_chunk(segment); }
void gpu_step_boundary(char*) {}

// Only counted: the tests start by themselves.
char* try_start_recording(Trigger) {
  g_start_attempts.fetch_add(1);
  return nullptr;
}

}  // namespace lull

using namespace lull;

namespace {

char* segment() { return g_state->segment.load(); }

#define PROBE extern "C" __attribute__((visibility("default")))

}  // namespace

// A fresh segment, as at the start of recording and in a fork child.
PROBE int probe_start() {
  void* base = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return 0;
  abi::SegmentView view(base);
  view.control().armed.store(1);
  python_find();
  stacks_load();
  stacks_prepare(view.base());
  g_next_ring.store(0);
  g_state->segment.store(view.base());
  g_state->generation.fetch_add(1);
  g_state->mode.store(Mode::kRecording);
  return 1;
}

PROBE void probe_arm(int armed) {
  abi::SegmentView(segment()).control().armed.store(armed != 0);
}

PROBE uint32_t probe_python_stack() { return python_stack(segment()); }
PROBE uint32_t probe_python_tip() { return python_tip(segment()); }
PROBE uint32_t probe_native_stack() { return native_stack(segment(), 0); }
PROBE int probe_contains(const char* suffix) { return python_stack_contains(suffix); }
PROBE int probe_is_main_thread() { return python_is_main_thread(); }
PROBE int probe_install() { return python_poll_install(); }
PROBE uint32_t probe_gc_hook() { return abi::SegmentView(segment()).header().gc_hook; }
PROBE uint32_t probe_step_hook() {
  return abi::SegmentView(segment()).header().step_hook;
}
PROBE uint32_t probe_scope_hook() {
  return abi::SegmentView(segment()).header().scope_hook;
}
PROBE void probe_name_step_range(const char* name) {
  settings().enabled = true;
  strcpy(settings().step_range, name);
}
PROBE void probe_poll_steps(uint64_t now_ns) { step_hook_poll(now_ns); }
PROBE uint32_t probe_python_version() {
  return abi::SegmentView(segment()).header().python_version;
}
PROBE uint32_t probe_arena_used() {
  return abi::SegmentView(segment()).header().arena_used;
}

PROBE const abi::StackEntry* probe_stack(uint32_t ref) {
  return reinterpret_cast<abi::StackEntry*>(abi::SegmentView(segment()).entry(ref));
}
PROBE const abi::CodeEntry* probe_code(uint32_t ref) {
  return reinterpret_cast<abi::CodeEntry*>(abi::SegmentView(segment()).entry(ref));
}

PROBE uint32_t probe_start_attempts() { return g_start_attempts; }
PROBE int probe_find() { return python_find(); }
PROBE void probe_thin(uint32_t thinning) {
  abi::SegmentView(segment()).control().thinning.store(thinning);
}
PROBE uint32_t probe_native_state() {
  return abi::SegmentView(segment()).header().native_stacks;
}
PROBE uint64_t probe_torch_allocations() {
  return abi::SegmentView(segment()).header().torch_allocations;
}

PROBE uint32_t probe_ring_count() { return g_next_ring; }
PROBE uint64_t probe_event_count(uint32_t ring) {
  return abi::SegmentView(segment()).ring(ring).head;
}
PROBE const abi::Event* probe_event(uint32_t ring, uint64_t position) {
  return &abi::SegmentView(segment()).slot(ring, position);
}

// python_stack() on a thread that no interpreter knows.
PROBE uint32_t probe_stack_of_foreign_thread() {
  pthread_t thread;
  uint32_t result = 1;
  auto body = [](void* out) -> void* {
    *static_cast<uint32_t*>(out) = python_stack(segment());
    return nullptr;
  };
  pthread_create(&thread, nullptr, body, &result);
  pthread_join(thread, nullptr);
  return result;
}

// Calls function(a, b, c) on such a thread.
PROBE void probe_on_foreign_thread(void (*function)(void*, void*, size_t), void* a,
                                   void* b, size_t c) {
  struct Call {
    void (*function)(void*, void*, size_t);
    void* a;
    void* b;
    size_t c;
  } call{function, a, b, c};
  pthread_t thread;
  auto body = [](void* data) -> void* {
    auto* todo = static_cast<Call*>(data);
    todo->function(todo->a, todo->b, todo->c);
    return nullptr;
  };
  pthread_create(&thread, nullptr, body, &call);
  pthread_join(thread, nullptr);
}

// Nanoseconds of one call, the best of 20 batches; `which` 3 is a clock read.
PROBE double probe_cost(int which) {
  constexpr int kBatch = 2000;
  double best = 1e9;
  for (int batch = 0; batch < 20; ++batch) {
    uint64_t start = monotonic_ns();
    for (int i = 0; i < kBatch; ++i) {
      switch (which) {
        case 0:
          python_stack(segment());
          break;
        case 1:
          python_tip(segment());
          break;
        case 2:
          native_stack(segment(), 0);
          break;
        default:
          monotonic_ns();
      }
    }
    double each = static_cast<double>(monotonic_ns() - start) / kBatch;
    if (each < best) best = each;
  }
  return best;
}

// How many events there were once everything is over, the interpreter included.
__attribute__((destructor)) static void report_events_at_exit() {
  const char* path = getenv("PROBE_REPORT");
  if (path == nullptr || segment() == nullptr) return;
  if (FILE* file = fopen(path, "w")) {
    fprintf(file, "%lu\n", static_cast<unsigned long>(probe_event_count(0)));
    fclose(file);
  }
}
