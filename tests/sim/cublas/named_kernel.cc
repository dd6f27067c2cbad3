#include "tests/sim/cublas/named_kernel.h"

#include <dlfcn.h>

#include <algorithm>

namespace lull::sim {
namespace {

constexpr int kCudaVersion = 12040;
constexpr unsigned kThreads = 256;

struct Driver {
  int (*library_load)(void**, const void*, void*, void*, unsigned, void*, void*,
                      unsigned);
  int (*library_kernel)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,
                unsigned, void*, void**, void**);
  void (*next_work)(double flops, double bytes, int tensor);
  void* library = nullptr;  // holds every kernel that is asked for
};

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
  auto next_work = dlsym(handle, "lull_sim_next_kernel_work");
  driver->next_work = reinterpret_cast<decltype(driver->next_work)>(next_work);
  bool ok = next_work != nullptr && find("cuLibraryLoadData", &driver->library_load) &&
            find("cuLibraryGetKernel", &driver->library_kernel) &&
            find("cuLaunchKernel", &driver->launch) &&
            driver->library_load(&driver->library, "", nullptr, nullptr, 0, nullptr,
                                 nullptr, 0) == 0;
  return ok ? driver : nullptr;
}

}  // namespace

bool launch_named(const char* name, void* stream, const Work& work) {
  static const Driver* driver = load();
  void* kernel = nullptr;
  if (driver == nullptr ||
      driver->library_kernel(&kernel, driver->library, name) != 0) {
    return false;
  }
  driver->next_work(work.flops, work.bytes, work.tensor);
  auto blocks = static_cast<unsigned>(std::clamp(work.blocks, 1.0, 2147483647.0));
  return driver->launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream, nullptr,
                        nullptr) == 0;
}

}  // namespace lull::sim
