#include "tests/sim/runtime/link.h"

#include <dlfcn.h>

#include <cstring>
#include <string>

namespace lull::sim {
namespace {

#ifdef LULL_SIM_STATIC_RUNTIME

// As NVIDIA's static runtime does: by dlsym it looks for cuGetProcAddress alone, which
// has names without versions, and a flag for per-thread default streams.
void* look_up(void* library, const char* name) {
  using GetProcAddress = int (*)(const char*, void**, int, unsigned long, int*);
  static const auto get =
      reinterpret_cast<GetProcAddress>(dlsym(library, "cuGetProcAddress_v2"));
  if (get == nullptr) return nullptr;
  std::string base = name;
  unsigned long flags = 0;
  for (const char* suffix : {"_ptsz", "_ptds"}) {
    if (!base.ends_with(suffix)) continue;
    base.resize(base.size() - std::strlen(suffix));
    flags = 2;
  }
  for (const char* version : {"_v2", "_v3"}) {
    if (base.ends_with(version)) base.resize(base.size() - std::strlen(version));
  }
  constexpr int kVersion = 12080;  // 13.0 has another cuCtxSynchronize
  void* function = nullptr;
  get(base.c_str(), &function, kVersion, flags, nullptr);
  return function != nullptr ? function : dlsym(library, name);  // lull_sim_...
}

#else

void* look_up(void* library, const char* name) { return dlsym(library, name); }

#endif

template <typename Function>
bool resolve(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(look_up(library, name));
  return *out != nullptr;
}

// `Tag`: a type for each function of the driver.
#ifdef LULL_SIM_STATIC_RUNTIME

// In NVIDIA's (12.9, 13.0) no function that it exports calls the driver, and no call is
// the caller's last jump: there are others of its own in between.
template <typename Tag, typename... Arguments>
struct Inside {
  static inline int (*driver)(Arguments...) = nullptr;
  [[gnu::noinline]] static int call(Arguments... arguments) {
    int result = driver(arguments...);
    asm volatile("" : "+r"(result));
    return result;
  }
};

template <typename Tag, typename... Arguments>
bool resolve_call(void* library, const char* name, int (**out)(Arguments...)) {
  using Call = Inside<Tag, Arguments...>;
  *out = Call::call;
  return resolve(library, name, &Call::driver);
}

#else

template <typename Tag, typename Function>
bool resolve_call(void* library, const char* name, Function* out) {
  return resolve(library, name, out);
}

#endif

bool resolve_all(void* library, Driver* driver) {
  bool ok = true;
#define RESOLVE(name, out) resolve_call<decltype([] {})>(library, name, out)
#define X(name, parameters) ok &= RESOLVE(#name, &driver->name);
  SIM_DRIVER_FUNCTIONS(X)
#undef X
#define X(name, suffix, parameters)           \
  ok &= RESOLVE(#name, &driver->name.legacy); \
  ok &= RESOLVE(#name #suffix, &driver->name.per_thread);
  SIM_DRIVER_STREAM_FUNCTIONS(X)
#undef X
#undef RESOLVE
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
