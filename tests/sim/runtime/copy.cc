// Copies and memsets.
#include "tests/sim/runtime/api.h"
#include "tests/sim/runtime/registry.h"

using namespace lull::sim;

namespace lull::sim {

// CUDA_MEMCPY2D and CUDA_MEMCPY3D: the driver's shapes, by unified addresses.
struct Copy2d {
  size_t src_x, src_y;
  unsigned src_type;
  const void* src_host;
  uint64_t src_device;
  void* src_array;
  size_t src_pitch;
  size_t dst_x, dst_y;
  unsigned dst_type;
  void* dst_host;
  uint64_t dst_device;
  void* dst_array;
  size_t dst_pitch;
  size_t width, height;
};
struct Copy3d {
  size_t src_x, src_y, src_z, src_lod;
  unsigned src_type;
  const void* src_host;
  uint64_t src_device;
  void* src_array;
  void* src_reserved;
  size_t src_pitch, src_height;
  size_t dst_x, dst_y, dst_z, dst_lod;
  unsigned dst_type;
  void* dst_host;
  uint64_t dst_device;
  void* dst_array;
  void* dst_reserved;
  size_t dst_pitch, dst_height;
  size_t width, height, depth;
};
static_assert(sizeof(Copy2d) == 128 && sizeof(Copy3d) == 200);

}  // namespace lull::sim

namespace {

constexpr unsigned kUnified = 4;

// cudaMemcpyKind.
constexpr int kHostToDevice = 1, kDeviceToHost = 2, kDeviceToDevice = 3, kMaxKind = 4;

int copy(const Driver& driver, bool per_thread, void* dst, const void* src, size_t n,
         int kind) {
  switch (kind) {
    case kHostToDevice:
      return driver.cuMemcpyHtoD_v2[per_thread](as_device(dst), src, n);
    case kDeviceToHost:
      return driver.cuMemcpyDtoH_v2[per_thread](dst, as_device(src), n);
    case kDeviceToDevice:
      return driver.cuMemcpyDtoD_v2[per_thread](as_device(dst), as_device(src), n);
    default:
      if (kind < 0 || kind > kMaxKind) return 21;  // invalid direction
      return driver.cuMemcpy[per_thread](as_device(dst), as_device(src), n);
  }
}

int copy_async(const Driver& driver, bool per_thread, void* dst, const void* src,
               size_t n, int kind, void* stream) {
  switch (kind) {
    case kHostToDevice:
      return driver.cuMemcpyHtoDAsync_v2[per_thread](as_device(dst), src, n, stream);
    case kDeviceToHost:
      return driver.cuMemcpyDtoHAsync_v2[per_thread](dst, as_device(src), n, stream);
    case kDeviceToDevice:
      return driver.cuMemcpyDtoDAsync_v2[per_thread](as_device(dst), as_device(src), n,
                                                     stream);
    default:
      if (kind < 0 || kind > kMaxKind) return 21;
      return driver.cuMemcpyAsync[per_thread](as_device(dst), as_device(src), n,
                                              stream);
  }
}

Copy2d rectangle(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                 size_t width, size_t height) {
  Copy2d c{};
  c.src_type = c.dst_type = kUnified;
  c.src_device = as_device(src);
  c.dst_device = as_device(dst);
  c.src_pitch = src_pitch;
  c.dst_pitch = dst_pitch;
  c.width = width;
  c.height = height;
  return c;
}

// cudaMemcpy3DParms.
struct PitchedPointer {
  void* pointer;
  size_t pitch, width, height;
};
struct Parameters3d {
  void* src_array;
  size_t src_position[3];
  PitchedPointer src;
  void* dst_array;
  size_t dst_position[3];
  PitchedPointer dst;
  size_t width, height, depth;
  int kind;
};
static_assert(sizeof(Parameters3d) == 160);

Copy3d cuboid(const Parameters3d& p) {
  Copy3d c{};
  c.src_type = c.dst_type = kUnified;
  c.src_device = as_device(p.src_array != nullptr ? p.src_array : p.src.pointer);
  c.dst_device = as_device(p.dst_array != nullptr ? p.dst_array : p.dst.pointer);
  c.src_x = p.src_position[0];
  c.src_y = p.src_position[1];
  c.src_z = p.src_position[2];
  c.dst_x = p.dst_position[0];
  c.dst_y = p.dst_position[1];
  c.dst_z = p.dst_position[2];
  c.src_pitch = p.src.pitch;
  c.dst_pitch = p.dst.pitch;
  c.src_height = p.src.height;
  c.dst_height = p.dst.height;
  c.width = p.width;
  c.height = p.height;
  c.depth = p.depth;
  return c;
}

// The address `offset` bytes into a device variable; null if there is none.
void* symbol_address(const Driver& driver, const void* symbol, size_t offset) {
  const Variable* variable = Registry::get().variable(driver, symbol);
  if (variable == nullptr) return nullptr;
  return reinterpret_cast<void*>(variable->address + offset);
}

}  // namespace

SIM_STREAM_API(cudaMemcpy, _ptds, (void* dst, const void* src, size_t n, int kind),
               return call.done(copy(driver, kPerThread, dst, src, n, kind));)
SIM_STREAM_API(cudaMemcpyAsync, _ptsz,
               (void* dst, const void* src, size_t n, int kind, void* stream),
               return call.done(copy_async(driver, kPerThread, dst, src, n, kind,
                                           stream));)

SIM_STREAM_API(cudaMemcpy2D, _ptds,
               (void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                size_t width, size_t height, int),
               {
                 Copy2d c = rectangle(dst, dst_pitch, src, src_pitch, width, height);
                 return call.done(driver.cuMemcpy2D_v2[kPerThread](&c));
               })
SIM_STREAM_API(cudaMemcpy2DAsync, _ptsz,
               (void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                size_t width, size_t height, int, void* stream),
               {
                 Copy2d c = rectangle(dst, dst_pitch, src, src_pitch, width, height);
                 return call.done(driver.cuMemcpy2DAsync_v2[kPerThread](&c, stream));
               })
SIM_STREAM_API(cudaMemcpy3D, _ptds, (const Parameters3d* p), {
  Copy3d c = cuboid(*p);
  return call.done(driver.cuMemcpy3D_v2[kPerThread](&c));
})
SIM_STREAM_API(cudaMemcpy3DAsync, _ptsz, (const Parameters3d* p, void* stream), {
  Copy3d c = cuboid(*p);
  return call.done(driver.cuMemcpy3DAsync_v2[kPerThread](&c, stream));
})

SIM_STREAM_API(cudaMemcpyToSymbol, _ptds,
               (const void* symbol, const void* src, size_t n, size_t offset, int kind),
               {
                 void* dst = symbol_address(driver, symbol, offset);
                 if (dst == nullptr) return call.done(kInvalidSymbol);
                 return call.done(copy(driver, kPerThread, dst, src, n, kind));
               })
SIM_STREAM_API(cudaMemcpyToSymbolAsync, _ptsz,
               (const void* symbol, const void* src, size_t n, size_t offset, int kind,
                void* stream),
               {
                 void* dst = symbol_address(driver, symbol, offset);
                 if (dst == nullptr) return call.done(kInvalidSymbol);
                 return call.done(
                     copy_async(driver, kPerThread, dst, src, n, kind, stream));
               })
SIM_STREAM_API(cudaMemcpyFromSymbol, _ptds,
               (void* dst, const void* symbol, size_t n, size_t offset, int kind), {
                 void* src = symbol_address(driver, symbol, offset);
                 if (src == nullptr) return call.done(kInvalidSymbol);
                 return call.done(copy(driver, kPerThread, dst, src, n, kind));
               })
SIM_STREAM_API(
    cudaMemcpyFromSymbolAsync, _ptsz,
    (void* dst, const void* symbol, size_t n, size_t offset, int kind, void* stream), {
      void* src = symbol_address(driver, symbol, offset);
      if (src == nullptr) return call.done(kInvalidSymbol);
      return call.done(copy_async(driver, kPerThread, dst, src, n, kind, stream));
    })

SIM_EXPORT int cudaMemcpyPeer(void* dst, int, const void* src, int, size_t n) {
  SIM_CONTEXT_CALL();
  return call.done(
      driver.cuMemcpyPeer(as_device(dst), nullptr, as_device(src), nullptr, n));
}
SIM_EXPORT int cudaMemcpyPeerAsync(void* dst, int, const void* src, int, size_t n,
                                   void* stream) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemcpyPeerAsync(as_device(dst), nullptr, as_device(src),
                                            nullptr, n, stream));
}

SIM_STREAM_API(cudaMemset, _ptds, (void* dst, int value, size_t n),
               return call.done(driver.cuMemsetD8_v2[kPerThread](
                   as_device(dst), static_cast<unsigned char>(value), n));)
SIM_STREAM_API(cudaMemsetAsync, _ptsz, (void* dst, int value, size_t n, void* stream),
               return call.done(driver.cuMemsetD8Async[kPerThread](
                   as_device(dst), static_cast<unsigned char>(value), n, stream));)
SIM_STREAM_API(cudaMemset2D, _ptds,
               (void* dst, size_t pitch, int value, size_t width, size_t height),
               return call.done(driver.cuMemsetD2D8_v2[kPerThread](
                   as_device(dst), pitch, static_cast<unsigned char>(value), width,
                   height));)
SIM_STREAM_API(cudaMemset2DAsync, _ptsz,
               (void* dst, size_t pitch, int value, size_t width, size_t height,
                void* stream),
               return call.done(driver.cuMemsetD2D8Async[kPerThread](
                   as_device(dst), pitch, static_cast<unsigned char>(value), width,
                   height, stream));)
