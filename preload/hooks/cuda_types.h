// The types that CUDA functions take, as far as lull must know them: the same
// ABI as cuda.h and driver_types.h of CUDA 11 to 13, without their headers.
// Handles are void*, enumerations int. Checked against the real headers by
// tests/preload/cuda_signature_test.cc.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull {

using DevicePointer = unsigned long long;  // CUdeviceptr

struct Dim3 {
  unsigned x, y, z;
};

struct LaunchConfig {  // cudaLaunchConfig_t
  Dim3 grid, block;
  size_t shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

struct DriverLaunchConfig {  // CUlaunchConfig
  unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared;
  void* stream;
  void* attributes;
  unsigned attribute_count;
};

struct ChannelFormat {  // cudaChannelFormatDesc
  int x, y, z, w;       // bits of each component
  int kind;
};

struct Position {  // cudaPos
  size_t x, y, z;
};

struct Extent {  // cudaExtent
  size_t width, height, depth;
};

struct PitchedPointer {  // cudaPitchedPtr
  void* pointer;
  size_t pitch, width, height;
};

struct Memcpy3DParms {  // cudaMemcpy3DParms
  void* src_array;
  Position src_position;
  PitchedPointer src;
  void* dst_array;
  Position dst_position;
  PitchedPointer dst;
  Extent extent;  // width in bytes, in elements if an array takes part
  int kind;
};

struct DriverMemcpy2D {  // CUDA_MEMCPY2D_v2
  size_t src_x, src_y;
  int src_type;  // DriverMemoryType
  const void* src_host;
  DevicePointer src_device;
  void* src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  int dst_type;
  void* dst_host;
  DevicePointer dst_device;
  void* dst_array;
  size_t dst_pitch;
  size_t width, height;  // width in bytes
};

struct DriverMemcpy3D {  // CUDA_MEMCPY3D_v2
  size_t src_x, src_y, src_z, src_lod;
  int src_type;
  const void* src_host;
  DevicePointer src_device;
  void* src_array;
  void* reserved0;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  int dst_type;
  void* dst_host;
  DevicePointer dst_device;
  void* dst_array;
  void* reserved1;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
};

enum DriverMemoryType : int {  // CUmemorytype
  kDriverMemoryHost = 1,
  kDriverMemoryDevice = 2,
  kDriverMemoryArray = 3,
  kDriverMemoryUnified = 4,
};

enum CudaCopyKind : int {  // cudaMemcpyKind
  kCopyHostToHost = 0,
  kCopyHostToDevice = 1,
  kCopyDeviceToHost = 2,
  kCopyDeviceToDevice = 3,
  kCopyDefault = 4,
};

// What a wrapper returns whose original is nowhere to be found.
inline constexpr int kRuntimeNotSupported = 801;  // cudaErrorNotSupported
inline constexpr int kDriverNotFound = 500;       // CUDA_ERROR_NOT_FOUND

}  // namespace lull
