#include "preload/python/step_hook.h"

#include <atomic>

#include "preload/autograd/node.h"
#include "preload/entry/settings.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/python/error_keeper.h"
#include "preload/python/pending_call.h"
#include "preload/python/python.h"
#include "preload/scopes/record_function.h"
#include "preload/steps/boundary.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

enum class Install : uint32_t { kUndecided, kOn, kUnavailable };
std::atomic<Install> g_install{Install::kUndecided};

// Pending calls are few (32 for the whole process): one of ours at a time, not often.
constexpr uint64_t kRetryNs = 200'000'000;
std::atomic<uint64_t> g_last_try_ns{0};
std::atomic<bool> g_scheduled{false};

// Under the GIL; where there is no hook, by whoever has set g_counting.
StepCounter g_counter;
std::atomic<bool> g_counting{false};

// Which threads step, under the GIL.
pid_t g_stepping_thread = 0;
bool g_one_thread = true;

bool is_stepping_thread() {
  return g_stepping_thread == 0 || g_stepping_thread == raw_gettid();
}

// (optimizer, args, kwargs) -> None. Anybody may call it, with anything.
PyObject* on_step(PyObject*, PyObject* arguments) {
  const PythonApi* api = python_api();
  ErrnoKeeper keep_errno;
  OwnCall own(__builtin_frame_address(0));
  if (api->is_finalizing() == 0 && api->tuple_size(arguments) == 3) {
    if (!is_stepping_thread()) g_one_thread = false;
    g_stepping_thread = raw_gettid();
    bool ended = g_counter.stepped(api->tuple_get(arguments, 0));
    if (ended) step_boundary(abi::StepSource::kOptimizer);
  }
  api->incref(api->none);
  return api->none;
}

PythonMethod g_method = {"lull_step_hook", on_step, kMethVarargs,
                         "Marks the end of a training step."};

PyObject* g_handle = nullptr;  // whose remove() takes the hook out; under the GIL

// Optimizer.step goes through its hooks one by one; adding or removing one meanwhile
// would raise in the middle of the training.
bool is_in_a_step() { return python_stack_contains("torch/optim/optimizer.py"); }

bool register_hook(const PythonApi* api, PyObject* registrar) {
  PyObject* function = api->new_function(&g_method, nullptr, nullptr);
  if (function == nullptr) return false;
  g_handle = api->call(registrar, function, static_cast<PyObject*>(nullptr));
  api->decref(function);
  return g_handle != nullptr;
}

void decide(Install result) {
  g_install.store(result, std::memory_order_release);
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    step_hook_describe(g_state->segment.load(std::memory_order_relaxed));
  }
}

int try_as_pending_call(void*) {
  const PythonApi* api = python_api();
  ErrnoKeeper keep_errno;
  OwnCall own(__builtin_frame_address(0));
  g_scheduled.store(false, std::memory_order_release);
  if (api->this_interpreter == nullptr ||
      api->this_interpreter() == api->main_interpreter()) {
    ErrorKeeper keep_error(api);
    step_hook_try_install(api);
    autograd_try_install(api);
    record_function_try_install(api);
  }
  return 0;
}

}  // namespace

void step_hook_try_install(const PythonApi* api) {
  if (g_install.load(std::memory_order_acquire) != Install::kUndecided) return;
  if (settings().step_range[0] != 0) return decide(Install::kUnavailable);
  PyObject* modules = api->module_dict();
  PyObject* module =
      modules == nullptr ? nullptr : api->dict_get(modules, "torch.optim.optimizer");
  if (module == nullptr || is_in_a_step()) return;
  PyObject* registrar = api->get_attribute(module, "register_optimizer_step_post_hook");
  if (registrar != nullptr) {
    decide(register_hook(api, registrar) ? Install::kOn : Install::kUnavailable);
    api->decref(registrar);
  } else {
    api->error_clear();
    // In a module that is still being imported the function may be yet to come; in
    // PyTorch before 2.0, which has the class and not the function, it is not.
    PyObject* optimizer = api->get_attribute(module, "Optimizer");
    if (optimizer != nullptr) {
      api->decref(optimizer);
      decide(Install::kUnavailable);
    }
  }
  if (api->error_occurred() != nullptr) api->error_clear();
}

// The hook of a program whose threads have optimizers each stays, and does nothing.
void step_hook_remove(const PythonApi* api) {
  if (g_handle == nullptr || !g_one_thread || !is_stepping_thread() || is_in_a_step()) {
    return;
  }
  PyObject* remove = api->get_attribute(g_handle, "remove");
  if (remove == nullptr) return api->error_clear();
  PyObject* none = api->call(remove, static_cast<PyObject*>(nullptr));
  api->decref(remove);
  if (none == nullptr) return api->error_clear();
  api->decref(none);
  api->decref(g_handle);
  g_handle = nullptr;
  g_install.store(Install::kUndecided, std::memory_order_release);
}

void step_hook_poll(uint64_t now_ns) {
  if (g_install.load(std::memory_order_relaxed) != Install::kUndecided &&
      record_function_is_decided()) {
    return;
  }
  uint64_t last = g_last_try_ns.load(std::memory_order_relaxed);
  if (now_ns < last + kRetryNs ||
      !g_last_try_ns.compare_exchange_strong(last, now_ns)) {
    return;
  }
  const PythonApi* api = python_api();
  if (api == nullptr || g_scheduled.exchange(true, std::memory_order_acq_rel)) return;
  if (!python_call_soon(api, try_as_pending_call)) {
    g_scheduled.store(false, std::memory_order_release);
    g_last_try_ns.store(last, std::memory_order_relaxed);  // another thread may
  }
}

void step_scope_ended(abi::Ref stack) {
  if (g_install.load(std::memory_order_acquire) != Install::kUnavailable) return;
  if (settings().step_range[0] != 0 || stack == 0) return;
  // No GIL here. Of two threads whose optimizers step at the same moment one counts.
  if (g_counting.exchange(true, std::memory_order_acquire)) return;
  bool ended = g_counter.stepped(reinterpret_cast<const void*>(uintptr_t{stack}));
  g_counting.store(false, std::memory_order_release);
  if (ended) step_boundary(abi::StepSource::kOptimizer, Seen::kWhileRecording);
}

void step_hook_describe(char* segment) {
  abi::StepHookState state = abi::StepHookState::kNone;
  switch (g_install.load(std::memory_order_acquire)) {
    case Install::kUndecided:
      if (python_api() != nullptr) state = abi::StepHookState::kPending;
      break;
    case Install::kOn:
      state = abi::StepHookState::kOn;
      break;
    case Install::kUnavailable:
      state = abi::StepHookState::kUnavailable;
      break;
  }
  abi::SegmentView(segment).header().step_hook.store(static_cast<uint32_t>(state),
                                                     std::memory_order_relaxed);
}

bool StepCounter::stepped(const void* optimizer) {
  Entry* entry = nullptr;
  Entry* rarest = &entries_[0];
  for (Entry& candidate : entries_) {
    if (candidate.optimizer == optimizer) entry = &candidate;
    if (candidate.count < rarest->count) rarest = &candidate;
  }
  if (entry == nullptr) {
    // A newcomer stands just behind the others, so that steps go on when a new phase
    // of the training brings its own optimizer.
    entry = rarest;
    *entry = {optimizer, highest_ == 0 ? 0 : highest_ - 1};
  }
  if (++entry->count <= highest_) return false;
  highest_ = entry->count;
  return true;
}

}  // namespace lull
