#include "preload/scopes/record_function.h"

#include <stddef.h>

#include <atomic>

#include "preload/entry/state.h"
#include "preload/python/torch_version.h"
#include "preload/scopes/scope.h"
#include "preload/scopes/step_callbacks.h"
#include "preload/support/libdl.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

// std::unique_ptr<at::ObserverContext>: not trivial, so that the compiler returns it
// through memory, in whatever register the platform has for that. Ours are null.
class Context {
 public:
  Context() = default;
  Context(const Context&) = delete;
  ~Context() {}

 private:
  [[maybe_unused]] void* const object_ = nullptr;
};

// at::RecordFunctionCallback. Trivially copyable there, too.
struct Callback {
  Context (*start)(const void* function);
  void (*end)(const void* function, void* context);
  double probability;
  bool scopes[10];  // by at::RecordScope
  bool needs_inputs;
  bool needs_outputs;
  bool needs_ids;
};
static_assert(sizeof(Callback) == 40 && offsetof(Callback, probability) == 16 &&
              offsetof(Callback, scopes) == 24 &&
              offsetof(Callback, needs_inputs) == 34);
constexpr int kUserScope = 7;  // at::RecordScope::USER_SCOPE

using AddGlobalCallback = uint64_t(Callback callback);
using RemoveCallback = void(uint64_t handle);
using NameOf = const char*(const void* function);
using CurrentThreadId = uint64_t();
using Ask = bool();

constexpr char kAdd[] = "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE";
constexpr char kRemove[] = "_ZN2at14removeCallbackEm";
constexpr char kName[] = "_ZNK2at14RecordFunction4nameEv";
// What the wrapper needs besides.
constexpr char kThread[] = "_ZN2at14RecordFunction15currentThreadIdEv";
constexpr char kIsEnabled[] = "_ZN2at23isRecordFunctionEnabledEv";
constexpr char kHasGlobal[] = "_ZN2at18hasGlobalCallbacksEv";

enum class Install : uint32_t { kUndecided, kOn, kUnavailable };
std::atomic<Install> g_install{Install::kUndecided};

// Who sees to it that our functions are called.
enum class Way : uint32_t {
  kNobody,
  kCallback,
  kSeen,     // the callback; the wrapper has seen it, and adds them where it is gone
  kWrapper,  // the wrapper alone
  kNoRoom,   // the wrapper, which once could not: the callback is wanted back
  kForGood,  // the callback
};
std::atomic<Way> g_way{Way::kNobody};

// Set before the callback is first added, and never again.
struct Functions {
  AddGlobalCallback* add;
  RemoveCallback* remove;
  NameOf* name;
  CurrentThreadId* thread;  // this and the others nullptr: no wrapper
  Ask* is_enabled;
  Ask* has_global;
};
Functions g_torch = {};
uint64_t g_handle = 0;  // under the GIL

// RecordFunction cannot be moved: its address stays what it is, and others have others
// while it lives. Aligned to 16, on a machine of 47 or 56 bits of address.
uint64_t key_of(const void* function) {
  return (reinterpret_cast<uintptr_t>(function) >> 3) & ((uint64_t{1} << 51) - 1);
}

Context on_start(const void* function) {
  if (recording_segment() != nullptr)
    scope_begin(key_of(function), g_torch.name(function));
  return Context();
}

void on_end(const void* function, void*) {
  scope_end(key_of(function), abi::ScopeSource::kRecordFunction);
}

bool is_known(TorchVersion version) {
  return (version.major == 1 && version.minor == 13) ||
         (version.major == 2 && version.minor <= 15);
}

void add_callback(Way way) {
  Callback callback = {on_start, on_end, 1.0, {}, false, false, false};
  callback.scopes[kUserScope] = true;
  g_handle = g_torch.add(callback);
  g_way.store(way, std::memory_order_release);
}

// A program may clear all callbacks (torch._C._autograd._clear_callbacks): PyTorch
// warns of one that is no longer there.
void remove_callback() {
  if (g_torch.has_global == nullptr || g_torch.has_global()) g_torch.remove(g_handle);
}

bool find_functions() {
  if (g_torch.add != nullptr) return true;
  NextSymbol symbols[] = {{kAdd, nullptr},       {kRemove, nullptr},
                          {kName, nullptr},      {kThread, nullptr},
                          {kIsEnabled, nullptr}, {kHasGlobal, nullptr}};
  if (!find_symbols_with(kAdd, symbols, 6)) return false;
  for (int i = 0; i < 3; ++i) {
    if (symbols[i].address == nullptr) return false;
  }
  g_torch = {reinterpret_cast<AddGlobalCallback*>(symbols[0].address),
             reinterpret_cast<RemoveCallback*>(symbols[1].address),
             reinterpret_cast<NameOf*>(symbols[2].address),
             reinterpret_cast<CurrentThreadId*>(symbols[3].address),
             reinterpret_cast<Ask*>(symbols[4].address),
             reinterpret_cast<Ask*>(symbols[5].address)};
  return true;
}

bool install() {
  if (!find_functions()) return false;
  // Not pinned (support/pins.h): PyTorch is never unloaded, and an object of so many
  // dependencies must not be opened by a dlclose of the process's very end, after which
  // the loader would call their constructors again.
  bool wrapper = g_torch.thread != nullptr && g_torch.is_enabled != nullptr;
  add_callback(wrapper ? Way::kCallback : Way::kForGood);
  return true;
}

// The one whose RecordFunction asks. Another caller shows nothing: PyTorch's own call
// may be bound within its library (-Bsymbolic, RTLD_DEEPBIND), and never come to us.
bool is_pytorch(const void* caller) {
  const link_map* object = libdl::object_of(caller);
  return object != nullptr &&
         object == libdl::object_of(reinterpret_cast<const void*>(g_torch.add));
}

// What the wrapper has found out, done where PyTorch's mutex may be taken: with the GIL
// no fork comes in between.
void follow_the_wrapper() {
  Way way = g_way.load(std::memory_order_acquire);
  if (way == Way::kSeen) {
    // First, so that no scope begins without one of the two.
    g_way.store(Way::kWrapper, std::memory_order_release);
    remove_callback();
  } else if (way == Way::kNoRoom) {
    add_callback(Way::kForGood);
  }
}

bool is_settled(Way way) { return way != Way::kSeen && way != Way::kNoRoom; }

void decide(Install result) {
  g_install.store(result, std::memory_order_release);
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    record_function_describe(g_state->segment.load(std::memory_order_relaxed));
  }
}

}  // namespace

void record_function_try_install(const PythonApi* api) {
  if (record_function_is_decided() || recording_segment() == nullptr) return;
  if (g_install.load(std::memory_order_acquire) == Install::kOn) {
    return follow_the_wrapper();
  }
  PyObject* modules = api->module_dict();
  if (modules == nullptr) return;
  // Defines record_function; imported after all of PyTorch's libraries are initialised.
  if (api->dict_get(modules, "torch.autograd.profiler") == nullptr) return;
  PyObject* torch = api->dict_get(modules, "torch");
  if (torch == nullptr) return;
  bool on = is_known(torch_version(api, torch)) && install();
  decide(on ? Install::kOn : Install::kUnavailable);
}

bool record_function_is_decided() {
  return g_install.load(std::memory_order_acquire) != Install::kUndecided &&
         is_settled(g_way.load(std::memory_order_relaxed));
}

void record_function_remove() {
  if (g_install.load(std::memory_order_acquire) != Install::kOn) return;
  Way way = g_way.exchange(Way::kNobody, std::memory_order_acq_rel);
  if (way != Way::kWrapper && way != Way::kNoRoom) remove_callback();
  g_install.store(Install::kUndecided, std::memory_order_release);
}

void record_function_looks_at(void* callbacks, uint8_t scope, const void* caller) {
  if (scope != kUserScope) return;
  Way way = g_way.load(std::memory_order_acquire);
  if (way == Way::kNobody || way == Way::kForGood) return;
  if (!g_torch.is_enabled()) return;  // on this thread, by the program
  const StepPair ours = {reinterpret_cast<const void*>(on_start),
                         reinterpret_cast<const void*>(on_end)};
  StepPairs pairs(callbacks, g_torch.thread(), scope);
  // A thread has what it copied before the callback was taken out until it looks again.
  const bool has = pairs.have(ours);
  if (way == Way::kCallback) {
    if (has && is_pytorch(caller)) g_way.compare_exchange_strong(way, Way::kSeen);
  } else if (!has && !pairs.add(ours)) {
    scope_unopened();
    if (way == Way::kWrapper) g_way.compare_exchange_strong(way, Way::kNoRoom);
  }
}

void record_function_describe(char* segment) {
  abi::ScopeHookState state = abi::ScopeHookState::kNone;
  switch (g_install.load(std::memory_order_acquire)) {
    case Install::kUndecided:
      if (python_api() != nullptr) state = abi::ScopeHookState::kPending;
      break;
    case Install::kOn:
      state = abi::ScopeHookState::kOn;
      break;
    case Install::kUnavailable:
      state = abi::ScopeHookState::kUnavailable;
      break;
  }
  abi::SegmentView(segment).header().scope_hook.store(static_cast<uint32_t>(state),
                                                      std::memory_order_relaxed);
}

bool record_function_is_known(const char* torch_version) {
  return is_known(parse_torch_version(torch_version));
}

}  // namespace lull
