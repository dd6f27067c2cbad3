#include "tests/sim/runtime/link.h"

#include <dlfcn.h>

namespace lull::sim {
namespace {

template <typename Function>
bool resolve(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

bool resolve_all(void* library, Driver* driver) {
  bool ok = true;
#define X(name, parameters) ok &= resolve(library, #name, &driver->name);
  SIM_DRIVER_FUNCTIONS(X)
#undef X
#define X(name, suffix, parameters)                    \
  ok &= resolve(library, #name, &driver->name.legacy); \
  ok &= resolve(library, #name #suffix, &driver->name.per_thread);
  SIM_DRIVER_STREAM_FUNCTIONS(X)
#undef X
  ok &= resolve(library, "lull_sim_start", &driver->start);
  ok &= resolve(library, "lull_sim_begin_api", &driver->begin_api);
  ok &= resolve(library, "lull_sim_end_api", &driver->end_api);
  return ok;
}

}  // namespace

const Driver* load_driver() {
  static const Driver* driver = []() -> const Driver* {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    auto* loaded = new Driver;  // never freed: exit handlers still call in
    if (library == nullptr || !resolve_all(library, loaded)) return nullptr;
    return loaded;
  }();
  return driver;
}

}  // namespace lull::sim
