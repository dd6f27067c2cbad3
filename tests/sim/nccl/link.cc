#include "tests/sim/nccl/link.h"

#include <dlfcn.h>

namespace lull::sim::nccl {
namespace {

constexpr int kCudaVersion = 12040;
constexpr unsigned kBlocks = 24, kThreads = 512;

// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

const Driver* load() {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  using Lookup = int (*)(const char*, void**, int, unsigned long, int*);
  auto lookup = reinterpret_cast<Lookup>(dlsym(handle, "cuGetProcAddress_v2"));
  if (lookup == nullptr) return nullptr;
  auto* driver = new Driver;  // never freed: exit handlers still launch
  auto find = [&](const char* name, auto* out) {
    return lookup(name, reinterpret_cast<void**>(out), kCudaVersion, 0, nullptr) == 0;
  };
  auto control = [&]<typename Function>(const char* name, Function* out) {
    *out = reinterpret_cast<Function>(dlsym(handle, name));
    return *out != nullptr;
  };
  bool ok = control("lull_sim_next_exchange", &driver->next_exchange) &&
            control("lull_sim_exchanged", &driver->exchanged) &&
            control("lull_sim_end_exchanges", &driver->end_exchanges) &&
            control("lull_sim_nccl_timeout_ns", &driver->timeout_ns) &&
            find("cuInit", &driver->init) && driver->init(0) == 0 &&
            find("cuDevicePrimaryCtxRetain", &driver->retain_primary) &&
            find("cuCtxSetCurrent", &driver->set_context) &&
            find("cuCtxGetDevice", &driver->current_device) &&
            find("cuLibraryLoadData", &driver->library_load) &&
            find("cuLibraryGetKernel", &driver->library_kernel) &&
            find("cuLaunchKernelEx", &driver->launch) &&
            driver->library_load(&driver->library, "", nullptr, nullptr, 0, nullptr,
                                 nullptr, 0) == 0;
  return ok ? driver : nullptr;
}

}  // namespace

int Driver::launch_exchange(const Exchange* exchange, void* kernel,
                            void* stream) const {
  LaunchConfig config{{kBlocks, 1, 1}, {kThreads, 1, 1}, 0, stream, nullptr, 0};
  next_exchange(exchange);
  int error = launch(&config, kernel, nullptr, nullptr);
  next_exchange(nullptr);
  return error;
}

const Driver* driver() {
  static const Driver* loaded = load();
  return loaded;
}

}  // namespace lull::sim::nccl
