#include "preload/python/pending_call.h"

#include "preload/hooks/guard.h"
#include "preload/python/python.h"
#include "preload/stacks/python_layout.h"
#include "preload/stacks/python_objects.h"

namespace lull {
namespace {

bool is_running(const PythonApi* api) {
  return api->is_initialized() != 0 && api->is_finalizing() == 0;
}

// What holds the GIL is a thread state; up to 3.11 any thread may ask which.
bool cannot_end_meanwhile(const PythonApi* api) {
  void* ours = api->this_thread_state();
  if (ours == nullptr) return false;
  return python_is_main_thread() ||
         (api->running_thread_state != nullptr && api->running_thread_state() == ours);
}

// A pointer, the queue's lock, follows: where there is none this is another layout.
bool takes_no_more(const PythonApi* api) {
  constexpr uint16_t kMinorThatRefuses = 8;
  if (api->minor != kMinorThatRefuses) return false;
  const CPythonLayout* layout = python_layout();
  if (layout == nullptr || api->runtime == nullptr) return true;
  auto runtime = reinterpret_cast<uintptr_t>(api->runtime);
  int at = layout->runtime_finishing;
  return load<int32_t>(runtime, at) != 0 ||
         !plausible(load<uintptr_t>(runtime, at + int{sizeof(uintptr_t)}));
}

// The interpreter takes a lock that is one of the waits that we hook.
bool add(const PythonApi* api, int (*function)(void*)) {
  OwnCall own(__builtin_frame_address(0));
  return api->add_pending_call(function, nullptr) == 0;
}

}  // namespace

bool python_call_soon(const PythonApi* api, int (*function)(void*)) {
  return is_running(api) && cannot_end_meanwhile(api) && !takes_no_more(api) &&
         add(api, function);
}

}  // namespace lull
