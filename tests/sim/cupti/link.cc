#include "tests/sim/cupti/link.h"

#include <dlfcn.h>

namespace lull::sim::cupti {
namespace {

template <typename Function>
bool resolve(void* library, const char* name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name));
  return *out != nullptr;
}

const Driver* load() {
  void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  auto* driver = new Driver{};  // never freed: exit handlers still call in
  bool ok = resolve(library, "lull_sim_add_observer", &driver->add_observer) &&
            resolve(library, "lull_sim_remove_observer", &driver->remove_observer) &&
            resolve(library, "lull_sim_clock_step_ns", &driver->clock_step_ns) &&
            resolve(library, "lull_sim_stays_ns", &driver->stays_ns) &&
            resolve(library, "lull_sim_newest_id", &driver->newest_id) &&
            resolve(library, "lull_sim_wait_for_devices", &driver->wait_for_devices) &&
            resolve(library, "lull_sim_device_count", &driver->device_count) &&
            resolve(library, "lull_sim_context_id", &driver->context_id) &&
            resolve(library, "lull_sim_stream_id", &driver->stream_id) &&
            resolve(library, "lull_sim_context_at", &driver->context_at);
  return ok ? driver : nullptr;
}

}  // namespace

const Driver* load_driver() {
  static const Driver* driver = load();
  return driver;
}

}  // namespace lull::sim::cupti
