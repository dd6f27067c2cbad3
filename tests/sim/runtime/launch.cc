// Kernels: registration, launch configuration, launch, attributes.
#include <vector>

#include "tests/sim/runtime/api.h"
#include "tests/sim/runtime/registry.h"

using namespace lull::sim;

namespace lull::sim {

// cudaLaunchConfig_t; the driver's has the same fields in another order.
struct RuntimeLaunchConfig {
  Dim3 grid, block;
  size_t shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(RuntimeLaunchConfig) == 56);

struct LaunchConfig {
  Dim3 grid, block;
  unsigned shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};
static_assert(sizeof(LaunchConfig) == 56);

}  // namespace lull::sim

namespace {

struct Configuration {
  Dim3 grid, block;
  size_t shared;
  void* stream;
};
thread_local std::vector<Configuration> t_configurations;

void* kernel(const Driver& driver, const void* stub) {
  return Registry::get().kernel(driver, stub);
}

int launch(const Driver& driver, bool per_thread, void* handle, Dim3 g, Dim3 b,
           void** args, size_t shared, void* stream) {
  if (handle == nullptr) return kInvalidDeviceFunction;
  int error = driver.cuLaunchKernel[per_thread](handle, g.x, g.y, g.z, b.x, b.y, b.z,
                                                static_cast<unsigned>(shared), stream,
                                                args, nullptr);
  return error == kInvalidValue ? 9 : error;  // invalid configuration
}

// cudaFuncAttributes, as far as it is filled.
struct FunctionAttributes {
  size_t shared, constant, local;
  int threads_per_block, registers, ptx, binary, cache_mode, max_dynamic_shared;
  int rest[24];
};
static_assert(sizeof(FunctionAttributes) == 144);

}  // namespace

SIM_EXPORT void** __cudaRegisterFatBinary(void* image) {
  return reinterpret_cast<void**>(Registry::get().add_binary(image));
}
SIM_EXPORT void __cudaRegisterFatBinaryEnd(void**) {}
SIM_EXPORT void __cudaUnregisterFatBinary(void** binary) {
  Registry::get().remove_binary(reinterpret_cast<FatBinary*>(binary));
}
SIM_EXPORT char __cudaInitModule(void**) { return 1; }

SIM_EXPORT void __cudaRegisterFunction(void** binary, const char* stub, char*,
                                       const char* name, int, void*, void*, void*,
                                       void*, int*) {
  Registry::get().add_kernel(reinterpret_cast<FatBinary*>(binary), stub, name);
}
SIM_EXPORT void __cudaRegisterVar(void**, char* shadow, char*, const char*, int,
                                  size_t bytes, int, int) {
  Registry::get().add_variable(shadow, bytes);
}

SIM_EXPORT unsigned __cudaPushCallConfiguration(Dim3 grid, Dim3 block, size_t shared,
                                                void* stream) {
  t_configurations.push_back({grid, block, shared, stream});
  return 0;
}
SIM_EXPORT int __cudaPopCallConfiguration(Dim3* grid, Dim3* block, size_t* shared,
                                          void* stream) {
  if (t_configurations.empty()) return 52;  // missing configuration
  const Configuration& top = t_configurations.back();
  *grid = top.grid;
  *block = top.block;
  *shared = top.shared;
  *static_cast<void**>(stream) = top.stream;
  t_configurations.pop_back();
  return kSuccess;
}

SIM_EXPORT int __cudaGetKernel(void** out, const void* stub) {
  SIM_CALL();
  *out = kernel(driver, stub);
  return call.done(*out != nullptr ? kSuccess : kInvalidDeviceFunction);
}
SIM_EXPORT int cudaGetKernel(void** out, const void* stub) {
  SIM_CALL();
  *out = kernel(driver, stub);
  return call.done(*out != nullptr ? kSuccess : kInvalidDeviceFunction);
}
SIM_EXPORT int cudaGetFuncBySymbol(void** out, const void* stub) {
  SIM_CALL();
  *out = kernel(driver, stub);
  return call.done(*out != nullptr ? kSuccess : kInvalidDeviceFunction);
}
SIM_EXPORT int cudaFuncGetName(const char** name, const void* stub) {
  SIM_CALL();
  *name = Registry::get().kernel_name(stub);
  return call.done(*name != nullptr ? kSuccess : kInvalidDeviceFunction);
}

SIM_STREAM_API(__cudaLaunchKernel, _ptsz,
               (void* handle, Dim3 grid, Dim3 block, void** args, size_t shared,
                void* stream),
               return call.done(launch(driver, kPerThread, handle, grid, block, args,
                                       shared, stream));)
SIM_STREAM_API(cudaLaunchKernel, _ptsz,
               (const void* stub, Dim3 grid, Dim3 block, void** args, size_t shared,
                void* stream),
               return call.done(launch(driver, kPerThread, kernel(driver, stub), grid,
                                       block, args, shared, stream));)
SIM_STREAM_API(cudaLaunchCooperativeKernel, _ptsz,
               (const void* stub, Dim3 g, Dim3 b, void** args, size_t shared,
                void* stream),
               {
                 void* handle = kernel(driver, stub);
                 if (handle == nullptr) return call.done(kInvalidDeviceFunction);
                 return call.done(driver.cuLaunchCooperativeKernel[kPerThread](
                     handle, g.x, g.y, g.z, b.x, b.y, b.z,
                     static_cast<unsigned>(shared), stream, args));
               })
SIM_STREAM_API(cudaLaunchKernelExC, _ptsz,
               (const RuntimeLaunchConfig* config, const void* stub, void** args), {
                 void* handle = kernel(driver, stub);
                 if (config == nullptr) return call.done(kInvalidValue);
                 if (handle == nullptr) return call.done(kInvalidDeviceFunction);
                 LaunchConfig translated{config->grid,
                                         config->block,
                                         static_cast<unsigned>(config->shared),
                                         config->stream,
                                         config->attributes,
                                         config->attribute_count};
                 return call.done(driver.cuLaunchKernelEx[kPerThread](
                     &translated, handle, args, nullptr));
               })

SIM_EXPORT int cudaFuncGetAttributes(FunctionAttributes* out, const void* stub) {
  SIM_CONTEXT_CALL();
  void* handle = kernel(driver, stub);
  if (handle == nullptr) return call.done(kInvalidDeviceFunction);
  *out = {};
  driver.cuFuncGetAttribute(&out->threads_per_block, 0, handle);
  driver.cuFuncGetAttribute(&out->registers, 4, handle);
  driver.cuFuncGetAttribute(&out->ptx, 5, handle);
  driver.cuFuncGetAttribute(&out->binary, 6, handle);
  driver.cuFuncGetAttribute(&out->max_dynamic_shared, 8, handle);
  return call.done(kSuccess);
}
SIM_EXPORT int cudaFuncSetAttribute(const void* stub, int attribute, int value) {
  SIM_CONTEXT_CALL();
  void* handle = kernel(driver, stub);
  if (handle == nullptr) return call.done(kInvalidDeviceFunction);
  return call.done(driver.cuFuncSetAttribute(handle, attribute, value));
}
SIM_EXPORT int cudaFuncSetCacheConfig(const void* stub, int) {
  SIM_CONTEXT_CALL();
  return call.done(kernel(driver, stub) != nullptr ? kSuccess : kInvalidDeviceFunction);
}

SIM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    int* blocks, const void* stub, int threads, size_t shared, unsigned flags) {
  SIM_CONTEXT_CALL();
  void* handle = kernel(driver, stub);
  if (handle == nullptr) return call.done(kInvalidDeviceFunction);
  return call.done(driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, handle, threads, shared, flags));
}
SIM_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks,
                                                             const void* stub,
                                                             int threads,
                                                             size_t shared) {
  SIM_CONTEXT_CALL();
  void* handle = kernel(driver, stub);
  if (handle == nullptr) return call.done(kInvalidDeviceFunction);
  return call.done(driver.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      blocks, handle, threads, shared, 0));
}
