// Modules, functions and kernel launches. A module's code is not read: it holds
// every function that is asked for. Libraries and kernels (cuLibrary*, cuKernel*)
// are the same objects under other names.
#include <algorithm>
#include <cstring>

#include "tests/sim/driver/api.h"
#include "tests/sim/driver/device.h"

using namespace lull::sim;

namespace {

int load(Engine* engine, void** out) {
  if (out == nullptr) return kInvalidValue;
  Lock lock(engine->mutex());
  auto module = std::make_shared<Module>();
  module->id = engine->new_id();
  *out = engine->modules.add(std::move(module));
  return kOk;
}

int unload(Engine* engine, void* handle) {
  Lock lock(engine->mutex());
  auto module = engine->modules.find(handle);
  if (module == nullptr) return kInvalidHandle;
  engine->modules.remove(handle);
  engine->unloaded.push_back(std::move(module));
  return kOk;
}

int get_function(Engine* engine, void** out, void* handle, const char* name) {
  if (out == nullptr || name == nullptr || *name == '\0') return kInvalidValue;
  uint32_t name_id = engine->log().enabled() ? engine->log().name(name) : 0;
  Lock lock(engine->mutex());
  auto module = engine->modules.find(handle);
  if (module == nullptr) return kInvalidHandle;
  auto& function = module->functions[name];
  if (function == nullptr) {
    function = std::make_unique<Function>();
    function->name = name;
    function->name_id = name_id;
    function->module = module.get();
  }
  *out = function.get();
  return kOk;
}

struct Shape {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
};

int launch(Engine* engine, ApiCall* call, void* function, const Shape& shape,
           void* handle, DefaultStream null) {
  const unsigned* g = shape.grid;
  const unsigned* b = shape.block;
  uint64_t threads = uint64_t{b[0]} * b[1] * b[2];
  uint64_t blocks = uint64_t{g[0]} * g[1] * g[2];
  if (function == nullptr) return kInvalidHandle;
  if (threads == 0 || threads > kThreadsPerBlock || blocks == 0) return kInvalidValue;
  std::shared_ptr<Stream> stream;
  int64_t cost;
  {
    Lock lock(engine->mutex());
    stream = engine->stream(handle, null);
    cost = engine->config().launch_ns;
  }
  if (stream == nullptr) return kInvalidHandle;
  engine->wait_for_room(stream);
  call->compute(cost);
  OpSpec spec;
  spec.kind = OpKind::kKernel;
  spec.function = static_cast<const Function*>(function);
  spec.grid = static_cast<uint32_t>(blocks);
  spec.block = static_cast<uint32_t>(threads);
  std::copy_n(shape.grid, 3, spec.shape);
  std::copy_n(shape.block, 3, spec.shape + 3);
  spec.shared = shape.shared;
  Lock lock(engine->mutex());
  return engine->enqueue(stream, std::move(spec));
}

int function_attribute(const Function* function, int attribute) {
  switch (attribute) {
    case 0:
      return kThreadsPerBlock;
    case 4:  // registers
      return 32;
    case 5:  // PTX and binary version
    case 6:
      return kComputeMajor * 10 + kComputeMinor;
    case 8:
      return function->max_dynamic_shared;
    default:
      return 0;
  }
}

}  // namespace

SIM_EXPORT int cuModuleLoad(void** module, const char*) {
  SIM_CALL();
  return call.done(load(engine, module));
}
SIM_EXPORT int cuModuleLoadData(void** module, const void*) {
  SIM_CALL();
  return call.done(load(engine, module));
}
SIM_EXPORT int cuModuleLoadDataEx(void** module, const void*, unsigned, void*, void*) {
  SIM_CALL();
  return call.done(load(engine, module));
}
SIM_EXPORT int cuModuleLoadFatBinary(void** module, const void*) {
  SIM_CALL();
  return call.done(load(engine, module));
}
SIM_EXPORT int cuModuleUnload(void* module) {
  SIM_CALL();
  return call.done(unload(engine, module));
}
SIM_EXPORT int cuModuleGetFunction(void** function, void* module, const char* name) {
  SIM_CALL();
  return call.done(get_function(engine, function, module, name));
}
SIM_EXPORT int cuModuleGetLoadingMode(int* mode) {
  SIM_CALL();
  *mode = 2;  // lazy
  return call.done(kOk);
}

SIM_EXPORT int cuLibraryLoadData(void** library, const void*, void*, void*, unsigned,
                                 void*, void*, unsigned) {
  SIM_CALL();
  return call.done(load(engine, library));
}
SIM_EXPORT int cuLibraryUnload(void* library) {
  SIM_CALL();
  return call.done(unload(engine, library));
}
SIM_EXPORT int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  SIM_CALL();
  return call.done(get_function(engine, kernel, library, name));
}
SIM_EXPORT int cuLibraryGetModule(void** module, void* library) {
  SIM_CALL();
  *module = library;
  return call.done(kOk);
}
SIM_EXPORT int cuKernelGetFunction(void** function, void* kernel) {
  SIM_CALL();
  *function = kernel;
  return call.done(kernel != nullptr ? kOk : kInvalidHandle);
}
SIM_EXPORT int cuKernelGetName(const char** name, void* kernel) {
  SIM_CALL();
  if (kernel == nullptr) return call.done(kInvalidHandle);
  *name = static_cast<Function*>(kernel)->name.c_str();
  return call.done(kOk);
}
SIM_EXPORT int cuFuncGetName(const char** name, void* function) {
  SIM_CALL();
  if (function == nullptr) return call.done(kInvalidHandle);
  *name = static_cast<Function*>(function)->name.c_str();
  return call.done(kOk);
}
SIM_EXPORT int cuFuncGetModule(void** module, void* function) {
  SIM_CALL();
  if (function == nullptr) return call.done(kInvalidHandle);
  *module = static_cast<Function*>(function)->module;
  return call.done(kOk);
}
SIM_EXPORT int cuFuncGetAttribute(int* value, int attribute, void* function) {
  SIM_CALL();
  if (function == nullptr) return call.done(kInvalidHandle);
  *value = function_attribute(static_cast<Function*>(function), attribute);
  return call.done(kOk);
}
SIM_EXPORT int cuKernelGetAttribute(int* value, int attribute, void* kernel, int) {
  SIM_CALL();
  if (kernel == nullptr) return call.done(kInvalidHandle);
  *value = function_attribute(static_cast<Function*>(kernel), attribute);
  return call.done(kOk);
}
SIM_EXPORT int cuFuncSetAttribute(void* function, int attribute, int value) {
  SIM_CALL();
  if (function == nullptr) return call.done(kInvalidHandle);
  if (attribute == 8) static_cast<Function*>(function)->max_dynamic_shared = value;
  return call.done(kOk);
}
SIM_EXPORT int cuFuncSetCacheConfig(void* function, int) {
  SIM_CALL();
  return call.done(function != nullptr ? kOk : kInvalidHandle);
}

SIM_STREAM_API(cuLaunchKernel, _ptsz,
               (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                unsigned by, unsigned bz, unsigned shared, void* stream, void**,
                void**),
               return call.done(launch(engine, &call, function,
                                       {{gx, gy, gz}, {bx, by, bz}, shared}, stream,
                                       kNull));)

SIM_STREAM_API(cuLaunchCooperativeKernel, _ptsz,
               (void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                unsigned by, unsigned bz, unsigned shared, void* stream, void**),
               return call.done(launch(engine, &call, function,
                                       {{gx, gy, gz}, {bx, by, bz}, shared}, stream,
                                       kNull));)

SIM_STREAM_API(cuLaunchKernelEx, _ptsz,
               (const LaunchConfig* config, void* function, void**, void**), {
                 if (config == nullptr) return call.done(kInvalidValue);
                 Shape shape;
                 std::memcpy(shape.grid, config->grid, sizeof shape.grid);
                 std::memcpy(shape.block, config->block, sizeof shape.block);
                 shape.shared = config->shared;
                 return call.done(
                     launch(engine, &call, function, shape, config->stream, kNull));
               })

SIM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, void*,
                                                                    int threads,
                                                                    size_t shared,
                                                                    unsigned) {
  SIM_CALL();
  *blocks = blocks_per_multiprocessor(threads, shared);
  return call.done(kOk);
}
SIM_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, void*,
                                                           int threads, size_t shared) {
  SIM_CALL();
  *blocks = blocks_per_multiprocessor(threads, shared);
  return call.done(kOk);
}
