// Driver functions that programs ask the driver or the runtime for: Triton, JAX
// and every static cudart come this way. Each answer that is an exported
// function of our list is exchanged for its wrapper; any other is left alone.
#include "preload/hooks/cuda_call.h"

namespace lull {
namespace {

void exchange(int status, const char* symbol, void** out) {
  if (status != 0 || symbol == nullptr || out == nullptr || *out == nullptr) return;
  *out = wrapper_for_driver_symbol(symbol, *out);
}

}  // namespace

#define LULL_ENTRY_POINT(symbol_name, library, slot, missing, hook, parameters,  \
                         arguments)                                              \
  LULL_EXPORT int symbol_name parameters {                                       \
    auto* original = original_of<int parameters>(Library::library, #hook, slot); \
    if (original == nullptr) return missing;                                     \
    int result = original arguments;                                             \
    exchange(result, symbol, out);                                               \
    return result;                                                               \
  }                                                                              \
  LULL_TABLE_ENTRY(hook, symbol_name, library, slot)

#define LULL_RUNTIME_ENTRY_POINT(major, node, name, parameters, arguments)     \
  LULL_ENTRY_POINT(lull_##major##_##name, kCudart##major,                      \
                   LULL_RUNTIME_SLOT(major, name), kRuntimeNotSupported, name, \
                   parameters, arguments)                                      \
  LULL_VERSION(major, node, name)

#define LULL_ON_launch(...)
#define LULL_ON_sync(...)
#define LULL_ON_copy(...)
#define LULL_ON_memory(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)

#define LULL_ON_life(id, need, result, name, parameters, arguments, event)        \
  LULL_RUNTIME_ENTRY_POINT(11, "@libcudart.so.11.0", name, parameters, arguments) \
  LULL_RUNTIME_ENTRY_POINT(12, "@libcudart.so.12", name, parameters, arguments)   \
  LULL_RUNTIME_ENTRY_POINT(13, "@@libcudart.so.13", name, parameters, arguments)
LULL_RUNTIME_HOOKS(LULL_ROW)
#undef LULL_ON_life

#define LULL_ON_life(id, need, result, name, parameters, arguments, event)           \
  LULL_ENTRY_POINT(name, kDriver, g_driver_originals[size_t(DriverIndex::k_##name)], \
                   kDriverNotFound, name, parameters, arguments)
LULL_DRIVER_HOOKS(LULL_ROW)

}  // namespace lull
