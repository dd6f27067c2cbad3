// What every file of the simulated driver needs: exporting, the frame of a call,
// and the driver's types as the ABI has them. Written from the published ABI so
// that the build needs no CUDA toolkit; abi_test.cc compares it with the vendor's
// headers where those are installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tests/sim/engine/api_call.h"
#include "tests/sim/engine/engine.h"
#include "tests/sim/engine/observer.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

// First line of an API function: logs it, and names `engine` and the lock.
#define SIM_CALL()                                          \
  static ::lull::sim::NameCache sim_name;                   \
  ::lull::sim::ApiCall call(__func__, &sim_name);           \
  ::lull::sim::Engine* engine = ::lull::sim::Engine::get(); \
  if (engine == nullptr) return call.done(::lull::sim::kNotInitialized)

// One body, two functions: for programs with the legacy default stream, and with
// per-thread default streams. The body knows which as kNull.
#define SIM_STREAM_API(name, suffix, parameters, ...)              \
  SIM_EXPORT int name parameters {                                 \
    SIM_CALL();                                                    \
    constexpr auto kNull = ::lull::sim::DefaultStream::kLegacy;    \
    __VA_ARGS__                                                    \
  }                                                                \
  SIM_EXPORT int name##suffix parameters {                         \
    SIM_CALL();                                                    \
    constexpr auto kNull = ::lull::sim::DefaultStream::kPerThread; \
    __VA_ARGS__                                                    \
  }

namespace lull::sim {

using DevicePtr = uint64_t;
using Lock = std::unique_lock<std::mutex>;

inline bool valid(Engine* engine, int device) {
  return device >= 0 && device < engine->config().devices;
}

// CUlaunchConfig.
struct LaunchConfig {
  unsigned grid[3];
  unsigned block[3];
  unsigned shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

// CUDA_MEMCPY2D. Memory types: 1 host, 2 device, 3 array, 4 unified.
struct Copy2d {
  size_t src_x, src_y;
  unsigned src_type;
  const void* src_host;
  DevicePtr src_device;
  void* src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  unsigned dst_type;
  void* dst_host;
  DevicePtr dst_device;
  void* dst_array;
  size_t dst_pitch;
  size_t width, height;
};

// CUDA_MEMCPY3D.
struct Copy3d {
  size_t src_x, src_y, src_z, src_lod;
  unsigned src_type;
  const void* src_host;
  DevicePtr src_device;
  void* src_array;
  void* src_reserved;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  unsigned dst_type;
  void* dst_host;
  DevicePtr dst_device;
  void* dst_array;
  void* dst_reserved;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
};

// CUDA_ARRAY_DESCRIPTOR. Arrays are linear memory here.
struct ArrayDescriptor {
  size_t width, height;
  unsigned format, channels;
};

static_assert(sizeof(LaunchConfig) == 56);
static_assert(sizeof(Copy2d) == 128);
static_assert(sizeof(Copy3d) == 200);

inline void* as_pointer(DevicePtr address) { return reinterpret_cast<void*>(address); }
inline DevicePtr as_device(const void* pointer) {
  return reinterpret_cast<DevicePtr>(pointer);
}

}  // namespace lull::sim
