#include "tests/preload/cuda_shim_double.h"

#include <errno.h>
#include <sys/mman.h>

#include <algorithm>

#include "preload/attach/slots.h"
#include "preload/autograd/backward.h"
#include "preload/cupti/gpu.h"
#include "preload/python/python.h"
#include "preload/python/step_hook.h"
#include "preload/ring/writer.h"
#include "preload/stacks/stacks.h"

namespace lull {

namespace {
State g_double_state;
uint32_t g_next_ring;
}  // namespace

State* g_state = &g_double_state;
constinit thread_local ThreadState t_thread
    __attribute__((tls_model("initial-exec"))){};

bool take_ring(char* segment) {
  uint32_t index = g_next_ring++ % abi::kMaxRings;
  abi::SegmentView view(segment);
  view.header().rings_used = std::max(view.header().rings_used.load(), index + 1);
  t_thread.ring = &view.ring(index);
  t_thread.ring_index = index;
  t_thread.head = 0;
  t_thread.generation = g_state->generation.load();
  return open_chunk(segment);
}
// As with a reader that always keeps up: one chunk for each ring, over and over.
bool open_chunk(char* segment) {
  auto id = static_cast<abi::ChunkId>(t_thread.ring_index % abi::kPoolChunks);
  t_thread.next = abi::SegmentView(segment).chunk(id);
  t_thread.end = t_thread.next + abi::kChunkEvents;
  return true;
}
bool open_chunk_or_lose(char* segment) { return open_chunk(segment); }
char* try_start_recording(Trigger) { return nullptr; }
std::atomic<uint64_t> g_gpu_deadline{UINT64_MAX};
std::atomic<uint32_t> g_gpu_restless{0};
void gpu_settle() {}
std::atomic<uint32_t> g_gpu_wants_sync{0};
void gpu_poll(char*) {}
void gpu_synchronized(char*, bool, uint64_t) {}
bool has_python() { return false; }
bool python_poll_install() { return true; }
void step_hook_poll(uint64_t) {}
void slots_follow() {}
std::atomic<bool> g_stacks_wanted{false};
void stacks_load_late() {}

constinit thread_local ThreadAutograd t_autograd
    __attribute__((tls_model("initial-exec"))) = {};
namespace {
bool g_node_is_new;
abi::Ref g_noted;
}  // namespace
bool a_node_is_new(char*) { return g_node_is_new; }
void note_forward(char*, abi::Ref stack) {
  g_node_is_new = false;
  g_noted = stack;
}

// Each of them spoils errno, as a careless implementation might.
abi::Ref python_stack(char*) {
  errno = ENOMEM;
  return kWholePythonStack;
}
abi::Ref python_tip(char*) {
  errno = ENOMEM;
  return kPythonTip;
}
abi::Ref native_stack(char*, int) {
  errno = ENOMEM;
  return kNativeStack;
}

}  // namespace lull

#define DOUBLE_EXPORT __attribute__((visibility("default")))

extern "C" {

DOUBLE_EXPORT void double_set_mode(lull::Mode mode) {
  lull::g_double_state.mode = mode;
}
DOUBLE_EXPORT char* double_segment() { return lull::g_double_state.segment; }
DOUBLE_EXPORT uint64_t double_event_count() { return lull::t_thread.head; }
DOUBLE_EXPORT lull::abi::Event double_event(uint64_t position) {
  lull::abi::Event* chunk = lull::t_thread.end - lull::abi::kChunkEvents;
  return chunk[position % lull::abi::kChunkEvents];
}
DOUBLE_EXPORT bool double_thread_is_watched() { return lull::t_thread.watched != 0; }

DOUBLE_EXPORT void double_make_node() {
  lull::t_autograd.generation = 1;
  lull::g_node_is_new = true;
  lull::g_noted = 0;
}
DOUBLE_EXPORT bool double_noted(lull::abi::Ref* stack) {
  *stack = lull::g_noted;
  return !lull::g_node_is_new;
}

DOUBLE_EXPORT void double_start_recording() {
  using namespace lull;
  void* memory = mmap(nullptr, abi::kSegmentSize, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  char* segment = static_cast<char*>(memory);
  abi::ControlBlock& control = abi::SegmentView(segment).control();
  control.armed = 1;
  control.late_launch_ns = abi::kDefaultLateLaunchNs;
  g_double_state.segment = segment;
  g_double_state.generation.fetch_add(1);
  g_double_state.mode = Mode::kRecording;
  t_thread.last_launch_ns = 0;
  t_autograd = {};
  g_node_is_new = false;
  take_ring(segment);
}
}
