// As much of libtorch_cpu.so as the shim's callback needs, as PyTorch declares it: the
// compiler decides how structs and smart pointers are passed, as it does there.
// Opened and closed by puppets/record_function.py.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace at {

struct ObserverContext {
  virtual ~ObserverContext() = default;
};

class EXPORT RecordFunction {
 public:
  const char* name() const;
  std::string text;
  std::vector<std::unique_ptr<ObserverContext>> contexts;
  int scope = 7;
};

struct RecordFunctionCallback {
  using Start = std::unique_ptr<ObserverContext> (*)(const RecordFunction&);
  using End = void (*)(const RecordFunction&, ObserverContext*);
  Start start;
  End end;
  double sampling_probability;
  std::array<bool, 10> scopes;
  bool needs_inputs;
  bool needs_outputs;
  bool needs_ids;
};

const char* RecordFunction::name() const { return text.c_str(); }

namespace {
struct Added {
  uint64_t handle;
  RecordFunctionCallback callback;
};
std::vector<Added> g_callbacks;
uint64_t g_next_handle = 41;
uint64_t g_added = 0;
}  // namespace

EXPORT uint64_t addGlobalCallback(RecordFunctionCallback callback) {
  ++g_added;
  g_callbacks.push_back({++g_next_handle, callback});
  return g_next_handle;
}

EXPORT void removeCallback(uint64_t handle) {
  std::erase_if(g_callbacks,
                [&](const Added& added) { return added.handle == handle; });
}

}  // namespace at

extern "C" {

EXPORT uint64_t fake_callbacks() { return at::g_callbacks.size(); }
EXPORT uint64_t fake_added() { return at::g_added; }

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
  for (const at::Added& added : at::g_callbacks) {
    function->contexts.push_back(added.callback.start(*function));
  }
  return function;
}

EXPORT void fake_exit(void* at) {
  auto* function = static_cast<at::RecordFunction*>(at);
  for (size_t i = 0; i < function->contexts.size() && i < at::g_callbacks.size(); ++i) {
    at::g_callbacks[i].callback.end(*function, function->contexts[i].get());
  }
  delete function;
}

}  // extern "C"
