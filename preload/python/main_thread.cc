#include <sys/syscall.h>
#include <unistd.h>

#include "preload/entry/state.h"
#include "preload/python/api.h"
#include "preload/python/python.h"

namespace lull {
namespace {

// Answer of this thread and the generation of State that it was made in, so that a
// thread that forked, and is its child's main thread now, asks again.
struct Answer {
  uint32_t generation;
  bool is_main;
};
thread_local Answer t_answer __attribute__((tls_model("initial-exec"))) = {0, false};

}  // namespace

// The interpreter's main thread is the one that initialised it: the process's first
// thread in every Python program, and the forking thread in a fork child. Only a
// program that embeds Python on another thread is answered wrong.
bool python_is_main_thread() {
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (generation == 0 || t_answer.generation != generation) {
    t_answer = {generation, syscall(SYS_gettid) == getpid()};
  }
  return t_answer.is_main;
}

bool python_holds_gil() {
  constexpr uint16_t kMinorOfOwnState = 12;
  const PythonApi* api = python_api();
  if (api == nullptr || api->is_initialized() == 0) return false;
  if (api->is_finalizing() != 0) return true;
  void* ours = api->this_thread_state();
  if (ours == nullptr) return false;
  if (api->running_thread_state == nullptr) return true;
  void* running = api->running_thread_state();
  return api->minor >= kMinorOfOwnState ? running != nullptr : running == ours;
}

}  // namespace lull
