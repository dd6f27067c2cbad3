// As much of libtorch_cpu.so as the shim's callback needs, as PyTorch declares it: the
// compiler decides how structs and smart pointers are passed, as it does there. A
// RecordFunction asks getStepCallbacks by name for what it calls, as PyTorch's does.
// Opened and closed by puppets/record_function.py.
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace at {

struct ObserverContext {
  virtual ~ObserverContext() = default;
};

class RecordFunction;
using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction&);
using End = void (*)(const RecordFunction&, ObserverContext*);
enum class RecordScope : uint8_t { USER_SCOPE = 7 };

struct StartEndPair {
  Start start;
  End end;
};

// c10::SmallVector<StartEndPair, 4>.
struct Pairs {
  StartEndPair* begin = within;
  uint32_t size = 0;
  uint32_t capacity = 4;
  StartEndPair within[4];

  Pairs() = default;
  Pairs(Pairs&& other) noexcept { *this = std::move(other); }
  Pairs& operator=(Pairs&& other) noexcept {
    for (uint32_t i = 0; i < other.size; ++i) push_back(other.begin[i]);
    return *this;
  }
  ~Pairs() {
    if (begin != within) delete[] begin;
  }
  void push_back(StartEndPair pair) {
    if (size == capacity) {
      auto* more = new StartEndPair[2 * capacity];
      for (uint32_t i = 0; i < size; ++i) more[i] = begin[i];
      if (begin != within) delete[] begin;
      begin = more;
      capacity *= 2;
    }
    begin[size++] = pair;
  }
};

struct StepCallbacks {
  Pairs callbacks;
  uint64_t thread_id = 0;
  RecordScope scope = RecordScope::USER_SCOPE;
  bool needs_inputs = false;
  bool needs_outputs = false;
  bool needs_ids = false;
};
static_assert(sizeof(StepCallbacks) == 96);

EXPORT StepCallbacks getStepCallbacks(RecordScope scope);
StepCallbacks StepCallbacksOf(RecordScope scope);
bool g_is_bound_within = false;  // as by -Bsymbolic: nobody comes in between

class EXPORT RecordFunction {
 public:
  RecordFunction()
      : step(g_is_bound_within ? StepCallbacksOf(RecordScope::USER_SCOPE)
                               : getStepCallbacks(RecordScope::USER_SCOPE)) {}
  const char* name() const;
  static uint64_t currentThreadId();
  std::string text;
  StepCallbacks step;
  std::vector<std::unique_ptr<ObserverContext>> contexts;
};

struct RecordFunctionCallback {
  Start start;
  End end;
  double sampling_probability;
  std::array<bool, 10> scopes;
  bool needs_inputs;
  bool needs_outputs;
  bool needs_ids;
};

const char* RecordFunction::name() const { return text.c_str(); }

uint64_t RecordFunction::currentThreadId() {
  static std::atomic<uint64_t> last{0};
  static thread_local const uint64_t id = ++last;
  return id;
}

namespace {
struct Added {
  uint64_t handle;
  RecordFunctionCallback callback;
};
std::vector<Added> g_callbacks;
uint64_t g_next_handle = 41;
uint64_t g_added = 0;
// Told instead of the callbacks that there are, as by a thread that has its own copy.
bool g_is_stale = false;
std::vector<Added> g_stale;
bool g_has_another_form = false;
uint64_t g_twice = 0;  // scopes whose list had the same pair more than once
uint64_t g_pairs = 0;  // of the newest scope

std::unique_ptr<ObserverContext> others_start(const RecordFunction&) { return nullptr; }
void others_end(const RecordFunction&, ObserverContext*) {}
}  // namespace

thread_local bool t_enabled = true;
uint64_t g_not_found = 0;  // handles that PyTorch would have warned of

EXPORT bool isRecordFunctionEnabled() { return t_enabled; }
EXPORT bool hasGlobalCallbacks() { return !g_callbacks.empty(); }
EXPORT StepCallbacks getStepCallbacks(RecordScope scope) {
  return StepCallbacksOf(scope);
}

StepCallbacks StepCallbacksOf(RecordScope scope) {
  StepCallbacks step;
  for (const Added& added : g_is_stale ? g_stale : g_callbacks) {
    if (t_enabled) step.callbacks.push_back({added.callback.start, added.callback.end});
  }
  step.thread_id = RecordFunction::currentThreadId() + (g_has_another_form ? 1 : 0);
  step.scope = scope;
  return step;
}

EXPORT uint64_t addGlobalCallback(RecordFunctionCallback callback) {
  ++g_added;
  g_callbacks.push_back({++g_next_handle, callback});
  return g_next_handle;
}

EXPORT void removeCallback(uint64_t handle) {
  g_not_found += std::erase_if(g_callbacks, [&](const Added& added) {
                   return added.handle == handle;
                 }) == 0;
}

}  // namespace at

extern "C" {

EXPORT uint64_t fake_callbacks() { return at::g_callbacks.size(); }
EXPORT uint64_t fake_added() { return at::g_added; }
EXPORT uint64_t fake_twice() { return at::g_twice; }
EXPORT uint64_t fake_not_found() { return at::g_not_found; }
EXPORT void fake_clear() { at::g_callbacks.clear(); }
EXPORT void fake_enable(bool it_is) { at::t_enabled = it_is; }
EXPORT void fake_bound_within(bool it_is) { at::g_is_bound_within = it_is; }
EXPORT uint64_t fake_pairs() { return at::g_pairs; }
EXPORT void fake_another_form(bool it_has) { at::g_has_another_form = it_has; }

EXPORT void fake_stale(bool it_is) {
  at::g_is_stale = it_is;
  at::g_stale = at::g_callbacks;
}

EXPORT void fake_others(uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    at::g_callbacks.push_back(
        {++at::g_next_handle,
         {at::others_start, at::others_end, 1.0, {}, false, false, false}});
  }
}

EXPORT void fake_no_others() {
  std::erase_if(at::g_callbacks, [](const at::Added& added) {
    return added.callback.start == at::others_start;
  });
}

// What the newest callback asked for: scopes from bit 0 on, needs from bit 16 on, and
// bit 20 where it wants every call.
EXPORT uint64_t fake_wanted() {
  const at::RecordFunctionCallback& callback = at::g_callbacks.back().callback;
  uint64_t wanted = 0;
  for (size_t i = 0; i < callback.scopes.size(); ++i) {
    wanted |= uint64_t{callback.scopes[i]} << i;
  }
  wanted |= uint64_t{callback.needs_inputs} << 16 |
            uint64_t{callback.needs_outputs} << 17 | uint64_t{callback.needs_ids} << 18;
  return wanted | uint64_t{callback.sampling_probability == 1.0} << 20;
}

EXPORT void* fake_enter(const char* name) {
  auto* function = new at::RecordFunction();
  if (name != nullptr) function->text = name;
  const at::Pairs& pairs = function->step.callbacks;
  at::g_pairs = pairs.size;
  for (uint32_t i = 0; i < pairs.size; ++i) {
    for (uint32_t j = 0; j < i; ++j) {
      at::g_twice += pairs.begin[i].start == pairs.begin[j].start &&
                     pairs.begin[i].start != at::others_start;
    }
    function->contexts.push_back(pairs.begin[i].start(*function));
  }
  return function;
}

EXPORT void fake_exit(void* at) {
  auto* function = static_cast<at::RecordFunction*>(at);
  for (size_t i = 0; i < function->contexts.size(); ++i) {
    function->step.callbacks.begin[i].end(*function, function->contexts[i].get());
  }
  delete function;
}

}  // extern "C"
