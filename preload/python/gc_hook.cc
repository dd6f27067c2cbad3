// GC pauses: a C function of ours in gc.callbacks.
//
// Life:  kIdle --python_call_soon()--> kScheduled --runs on the main thread, with
// the GIL--> kOn or kFailed. A pending call that ran in the wrong interpreter goes
// back to kIdle and is tried again. A fork child inherits the state together with
// the list entry, so that nothing is to be done there. If the program clears
// gc.callbacks, it has its way: there are no GC events from then on.
//
// After a detach the callback takes itself out, the step hook and PyTorch's callback
// with it: at the end of the next collection it schedules the pending call once more.
// Not lull_detach(), whose thread may be anywhere, in the lock of Py_AddPendingCall
// too.
//
// The callback counts "start" and "stop" of the main interpreter only, which run
// under its GIL: plain variables do. It raises nothing, and leaves an exception
// that was already set as it was.
#include <atomic>

#include "preload/autograd/node.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/python/api.h"
#include "preload/python/error_keeper.h"
#include "preload/python/pending_call.h"
#include "preload/python/python.h"
#include "preload/python/step_hook.h"
#include "preload/scopes/record_function.h"

namespace lull {
namespace {

enum class Install : uint32_t { kIdle, kScheduled, kOn, kFailed };
std::atomic<Install> g_install{Install::kIdle};
std::atomic<bool> g_wanted{true};
PyObject* g_callback = nullptr;  // in the list, under the GIL

// The collection that is running. start_ns 0: none that we saw begin.
struct Collection {
  uint64_t start_ns;
  uint32_t generation;  // of State: a fork child must not end its parent's pause
};
Collection g_collection;

// info[key], or 0.
uint64_t number(const PythonApi* api, PyObject* info, const char* key) {
  PyObject* value = api->dict_get(info, key);
  long result = value == nullptr ? 0 : api->as_long(value);
  return result < 0 ? 0 : static_cast<uint64_t>(result);
}

bool g_collecting = false;  // between "start" and "stop", under the GIL

void begin() {
  g_collecting = true;
  bool recording = recording_segment() != nullptr;
  g_collection.start_ns = recording ? monotonic_ns() : 0;
  g_collection.generation = g_state->generation.load(std::memory_order_relaxed);
}

void end(const PythonApi* api, PyObject* info) {
  g_collecting = false;
  uint64_t now = monotonic_ns();
  Collection collection = g_collection;
  g_collection.start_ns = 0;
  char* segment = recording_segment();
  if (segment == nullptr || collection.start_ns == 0 ||
      collection.generation != g_state->generation.load(std::memory_order_relaxed)) {
    return;
  }
  abi::Ref stack = python_stack(segment);
  uint64_t collected = number(api, info, "collected");
  uint64_t uncollectable = number(api, info, "uncollectable");
  uint32_t generation = static_cast<uint32_t>(number(api, info, "generation"));
  if (abi::Event* event = reserve_event(segment)) {
    *event = {
        .start_ns = collection.start_ns,
        .duration_ns = now - collection.start_ns,
        .arg0 = collected,
        .arg1 = uncollectable,
        .py_stack = stack,
        .native_stack = 0,
        .arg2 = generation,
        .api = 0,
        .type = abi::EventType::kGcPause,
        .flags = 0,
    };
    commit_event();
  }
  account_self(now);
}

int adapt(void*);

void schedule_removal(const PythonApi* api) {
  Install on = Install::kOn;
  if (!g_install.compare_exchange_strong(on, Install::kScheduled)) return;
  if (python_call_soon(api, adapt)) return;
  g_install.store(Install::kOn, std::memory_order_release);  // at the next collection
}

// The callback is an object that anybody may call, with anything.
void on_phase(const PythonApi* api, PyObject* phase, PyObject* info) {
  if (api->is_instance(phase, api->str_type) != 1) return;
  if (api->compare_ascii(phase, "start") == 0) {
    begin();
  } else if (api->compare_ascii(phase, "stop") == 0) {
    end(api, info);
    if (g_wanted.load(std::memory_order_relaxed)) {
      step_hook_try_install(api);  // a good occasion: the GIL is ours
      autograd_try_install(api);
      record_function_try_install(api);
    } else {
      schedule_removal(api);
    }
  }
}

PyObject* on_collection(PyObject*, PyObject* arguments) {
  const PythonApi* api = python_api();
  ErrnoKeeper keep_errno;
  OwnCall own(__builtin_frame_address(0));
  // What the interpreter collects on its way out is no pause of the training.
  if (api->is_initialized() != 0 && api->is_finalizing() == 0 &&
      api->tuple_size(arguments) == 2) {
    ErrorKeeper keep_error(api);
    on_phase(api, api->tuple_get(arguments, 0), api->tuple_get(arguments, 1));
  }
  api->incref(api->none);
  return api->none;
}

PythonMethod g_method = {"lull_gc_callback", on_collection, kMethVarargs,
                         "Measures the pauses of the garbage collector."};

PyObject* gc_callbacks(const PythonApi* api) {
  // Not through builtins.__import__, which a program may have replaced.
  PyObject* module = api->import_level("gc", nullptr, nullptr, nullptr, 0);
  if (module == nullptr) return nullptr;
  PyObject* callbacks = api->get_attribute(module, "callbacks");
  api->decref(module);
  return callbacks;
}

bool append_callback(const PythonApi* api) {
  PyObject* callbacks = gc_callbacks(api);
  if (callbacks == nullptr) return false;
  PyObject* function = api->new_function(&g_method, nullptr, nullptr);
  bool appended = function != nullptr && api->list_append(callbacks, function) == 0;
  if (appended) {
    g_callback = function;  // with its reference
  } else if (function != nullptr) {
    api->decref(function);
  }
  api->decref(callbacks);
  return appended;
}

bool remove_callback(const PythonApi* api) {
  PyObject* callbacks = gc_callbacks(api);
  if (callbacks == nullptr) return false;
  for (intptr_t i = api->list_size(callbacks); i-- > 0;) {
    if (api->list_get(callbacks, i) != g_callback) continue;
    api->list_set_slice(callbacks, i, i + 1, nullptr);
  }
  api->decref(callbacks);
  api->decref(g_callback);
  g_callback = nullptr;
  return true;
}

void publish(Install result) {
  g_install.store(result, std::memory_order_release);
  // Not recording_segment(): also while the relay has disarmed us.
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    python_describe(g_state->segment.load(std::memory_order_relaxed));
  }
}

// In or out, as wanted. While another thread is in the middle of a collection the
// list stays: what follows us in it would be skipped.
Install adapt_list(const PythonApi* api) {
  bool wanted = g_wanted.load(std::memory_order_relaxed);
  bool in = g_callback != nullptr;
  if (wanted && !in) return append_callback(api) ? Install::kOn : Install::kFailed;
  if (!wanted && in && !g_collecting) {
    step_hook_remove(api);
    record_function_remove();
    return remove_callback(api) ? Install::kIdle : Install::kOn;
  }
  return in ? Install::kOn : Install::kIdle;
}

// Runs as a pending call: on the main thread, with the GIL. Always 0, since
// anything else would raise.
int adapt(void*) {
  const PythonApi* api = python_api();
  ErrnoKeeper keep_errno;
  OwnCall own(__builtin_frame_address(0));
  if (api->this_interpreter != nullptr &&
      api->this_interpreter() != api->main_interpreter()) {
    g_install.store(g_callback != nullptr ? Install::kOn : Install::kIdle,
                    std::memory_order_release);
    return 0;
  }
  ErrorKeeper keep_error(api);
  publish(adapt_list(api));
  return 0;
}

}  // namespace

void python_want(bool wanted) { g_wanted.store(wanted, std::memory_order_relaxed); }

bool python_callbacks_are_out() {
  Install now = g_install.load(std::memory_order_acquire);
  return now == Install::kIdle || now == Install::kFailed;
}

bool python_poll_install() {
  Install now = g_install.load(std::memory_order_acquire);
  if (now != Install::kIdle) return now != Install::kScheduled;
  const PythonApi* api = python_api();
  if (api == nullptr) return false;
  Install idle = Install::kIdle;
  if (!g_install.compare_exchange_strong(idle, Install::kScheduled)) return false;
  if (!python_call_soon(api, adapt)) {
    g_install.store(Install::kIdle, std::memory_order_release);
  }
  return false;  // not run yet
}

void python_describe(char* segment) {
  abi::SegmentHeader& header = abi::SegmentView(segment).header();
  const PythonApi* api = python_api();
  abi::GcHookState state = abi::GcHookState::kNoPython;
  if (api != nullptr) {
    header.python_version.store(3u << 8 | api->minor, std::memory_order_relaxed);
    Install install = g_install.load(std::memory_order_acquire);
    state = install == Install::kOn       ? abi::GcHookState::kOn
            : install == Install::kFailed ? abi::GcHookState::kFailed
                                          : abi::GcHookState::kPending;
  }
  header.gc_hook.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
  step_hook_describe(segment);
  record_function_describe(segment);
}

}  // namespace lull
