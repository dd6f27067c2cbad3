// Allocation, pointer attributes, device variables.
#include "tests/sim/runtime/api.h"
#include "tests/sim/runtime/registry.h"

using namespace lull::sim;

namespace lull::sim {

// CUDA_ARRAY_DESCRIPTOR.
struct ArrayDescriptor {
  size_t width, height;
  unsigned format, channels;
};

}  // namespace lull::sim

namespace {

// cudaChannelFormatDesc. Kinds: 0 signed, 1 unsigned, 2 float.
struct ChannelFormat {
  int x, y, z, w;
  int kind;
};

ArrayDescriptor describe(const ChannelFormat& format, size_t width, size_t height) {
  unsigned channels = 0;
  for (int bits : {format.x, format.y, format.z, format.w}) channels += bits > 0;
  unsigned size = format.x == 8 ? 1 : format.x == 16 ? 2 : 3;
  unsigned driver_format = format.kind == 2 ? (size == 2 ? 0x10 : 0x20) : size;
  return {width, height, driver_format, channels};
}

// cudaPointerAttributes; the last member came with version 13.
struct PointerAttributes {
  int type, device;
  void* device_pointer;
  void* host_pointer;
#if LULL_SIM_CUDART >= 13
  long reserved[8];
#endif
};
static_assert(sizeof(PointerAttributes) == (LULL_SIM_CUDART >= 13 ? 88 : 24));

}  // namespace

SIM_EXPORT int cudaMalloc(void** out, size_t bytes) {
  SIM_CONTEXT_CALL();
  if (out == nullptr) return call.done(kInvalidValue);
  if (bytes == 0) {
    *out = nullptr;
    return call.done(kSuccess);
  }
  return call.done(driver.cuMemAlloc_v2(reinterpret_cast<uint64_t*>(out), bytes));
}
SIM_EXPORT int cudaMallocPitch(void** out, size_t* pitch, size_t width, size_t height) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemAllocPitch_v2(reinterpret_cast<uint64_t*>(out), pitch,
                                             width, height, 4));
}
SIM_EXPORT int cudaMallocManaged(void** out, size_t bytes, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(
      driver.cuMemAllocManaged(reinterpret_cast<uint64_t*>(out), bytes, flags));
}
SIM_EXPORT int cudaMallocArray(void** out, const ChannelFormat* format, size_t width,
                               size_t height, unsigned) {
  SIM_CONTEXT_CALL();
  ArrayDescriptor descriptor = describe(*format, width, height);
  return call.done(driver.cuArrayCreate_v2(out, &descriptor));
}
SIM_EXPORT int cudaFreeArray(void* array) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuArrayDestroy(array));
}
SIM_EXPORT int cudaFree(void* pointer) {
  SIM_CONTEXT_CALL();
  if (pointer == nullptr) return call.done(kSuccess);
  return call.done(driver.cuMemFree_v2(as_device(pointer)));
}
SIM_EXPORT int cudaHostAlloc(void** out, size_t bytes, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostAlloc(out, bytes, flags));
}
SIM_EXPORT int cudaMallocHost(void** out, size_t bytes) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostAlloc(out, bytes, 0));
}
SIM_EXPORT int cudaFreeHost(void* pointer) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemFreeHost(pointer));
}
SIM_EXPORT int cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostRegister_v2(pointer, bytes, flags));
}
SIM_EXPORT int cudaHostUnregister(void* pointer) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostUnregister(pointer));
}
SIM_EXPORT int cudaHostGetDevicePointer(void** out, void* pointer, unsigned flags) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostGetDevicePointer_v2(reinterpret_cast<uint64_t*>(out),
                                                       pointer, flags));
}
SIM_EXPORT int cudaHostGetFlags(unsigned* flags, void* pointer) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemHostGetFlags(flags, pointer));
}
SIM_EXPORT int cudaMemGetInfo(size_t* free_bytes, size_t* total) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuMemGetInfo_v2(free_bytes, total));
}

SIM_STREAM_API(cudaMallocAsync, _ptsz, (void** out, size_t bytes, void* stream),
               return call.done(driver.cuMemAllocAsync[kPerThread](
                   reinterpret_cast<uint64_t*>(out), bytes, stream));)
SIM_STREAM_API(cudaMallocFromPoolAsync, _ptsz,
               (void** out, size_t bytes, void* pool, void* stream),
               return call.done(driver.cuMemAllocFromPoolAsync[kPerThread](
                   reinterpret_cast<uint64_t*>(out), bytes, pool, stream));)
SIM_STREAM_API(cudaFreeAsync, _ptsz, (void* pointer, void* stream),
               return call.done(driver.cuMemFreeAsync[kPerThread](as_device(pointer),
                                                                  stream));)

SIM_EXPORT int cudaDeviceGetDefaultMemPool(void** pool, int device) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetDefaultMemPool(pool, device));
}
SIM_EXPORT int cudaDeviceGetMemPool(void** pool, int device) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetMemPool(pool, device));
}
SIM_EXPORT int cudaMemPoolCreate(void** pool, const void* properties) {
  SIM_CALL();
  return call.done(driver.cuMemPoolCreate(pool, properties));
}
SIM_EXPORT int cudaMemPoolDestroy(void* pool) {
  SIM_CALL();
  return call.done(driver.cuMemPoolDestroy(pool));
}
SIM_EXPORT int cudaMemPoolTrimTo(void* pool, size_t bytes) {
  SIM_CALL();
  return call.done(driver.cuMemPoolTrimTo(pool, bytes));
}
SIM_EXPORT int cudaMemPoolSetAttribute(void* pool, int attribute, void* value) {
  SIM_CALL();
  return call.done(driver.cuMemPoolSetAttribute(pool, attribute, value));
}
SIM_EXPORT int cudaMemPoolGetAttribute(void* pool, int attribute, void* value) {
  SIM_CALL();
  return call.done(driver.cuMemPoolGetAttribute(pool, attribute, value));
}

// Types: 0 not known, 1 host, 2 device, 3 managed.
SIM_EXPORT int cudaPointerGetAttributes(PointerAttributes* out, const void* pointer) {
  SIM_CONTEXT_CALL();
  unsigned type = 0, managed = 0;
  int device = -2;
  const int what[] = {2, 8, 9};
  void* values[] = {&type, &managed, &device};
  int error = driver.cuPointerGetAttributes(3, what, values, as_device(pointer));
  *out = {};
  out->type = managed != 0 ? 3 : static_cast<int>(type);
  out->device = device;
  void* address = const_cast<void*>(pointer);
  if (type != 0) out->device_pointer = address;
  if (type != 2 || managed != 0) out->host_pointer = address;
  return call.done(error);
}

SIM_EXPORT int cudaGetSymbolAddress(void** out, const void* symbol) {
  SIM_CONTEXT_CALL();
  const Variable* variable = Registry::get().variable(driver, symbol);
  if (variable == nullptr) return call.done(kInvalidSymbol);
  *out = reinterpret_cast<void*>(variable->address);
  return call.done(kSuccess);
}
SIM_EXPORT int cudaGetSymbolSize(size_t* bytes, const void* symbol) {
  SIM_CONTEXT_CALL();
  const Variable* variable = Registry::get().variable(driver, symbol);
  if (variable == nullptr) return call.done(kInvalidSymbol);
  *bytes = variable->bytes;
  return call.done(kSuccess);
}
