// Allocation: of device memory, of pinned and managed host memory, from pools.
#include "tests/sim/driver/api.h"
#include "tests/sim/engine/clock.h"

using namespace lull::sim;

namespace {

constexpr size_t kPage = 4096;
size_t round_up(size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

int allocate(Engine* engine, MemoryKind kind, size_t bytes, bool pool, DevicePtr* out) {
  Context* context = this_thread().context();
  if (out == nullptr || bytes == 0) return kInvalidValue;
  if (context == nullptr) return kInvalidContext;
  Lock lock(engine->mutex());
  if (!pool) {
    if (int error = engine->check_capture()) return error;
  }
  Block block;
  block.size = round_up(bytes);
  block.kind = kind;
  block.device = context->device;
  block.context = context->id;
  block.pool = pool;
  int64_t used = engine->memory.device_bytes(context->device);
  if (kind == MemoryKind::kDevice &&
      used + static_cast<int64_t>(block.size) > engine->config().memory_bytes) {
    return kOutOfMemory;
  }
  *out = engine->memory.allocate(block);
  return *out != 0 ? kOk : kOutOfMemory;
}

int64_t cost(Engine* engine, int64_t Config::*field) {
  Lock lock(engine->mutex());
  return engine->config().*field;
}

// cuMemFree: the implicit synchronisation that catches people out. The whole
// device becomes idle before the memory goes.
int free_device(Engine* engine, DevicePtr address) {
  if (address == 0) return kOk;
  std::vector<OpPtr> ops;
  {
    Lock lock(engine->mutex());
    if (int error = engine->check_capture()) return error;
    const Block* block = engine->memory.find(address);
    if (block == nullptr || block->base != address || block->on_host())
      return kInvalidValue;
    if (!block->pool) ops = engine->unfinished_on_device(block->device);
  }
  engine->wait(ops);
  Lock lock(engine->mutex());
  return engine->memory.release(address) ? kOk : kInvalidValue;
}

int free_host(Engine* engine, void* pointer, MemoryKind kind) {
  if (pointer == nullptr) return kOk;
  std::vector<OpPtr> ops;
  {
    Lock lock(engine->mutex());
    if (int error = engine->check_capture()) return error;
    const Block* block = engine->memory.find(as_device(pointer));
    if (block == nullptr || block->base != as_device(pointer) || block->kind != kind) {
      return kInvalidValue;
    }
    ops = engine->unfinished_on_device(block->device);
  }
  engine->wait(ops);
  Lock lock(engine->mutex());
  return engine->memory.release(as_device(pointer)) ? kOk : kInvalidValue;
}

int allocate_host(Engine* engine, ApiCall* call, void** out, size_t bytes) {
  if (out == nullptr) return kInvalidValue;
  DevicePtr address = 0;
  int error = allocate(engine, MemoryKind::kPinned, bytes, false, &address);
  if (error == kOk) *out = as_pointer(address);
  call->sleep(cost(engine, &Config::host_alloc_ns));
  return error;
}

// Stream-ordered: no host cost, no synchronisation. The pages are there at once.
int allocate_async(Engine* engine, DevicePtr* out, size_t bytes, void* handle,
                   DefaultStream null) {
  {
    Lock lock(engine->mutex());
    auto stream = engine->stream(handle, null);
    if (stream == nullptr) return kInvalidHandle;
  }
  return allocate(engine, MemoryKind::kDevice, bytes, true, out);
}

// The pages go when the stream gets there.
int free_async(Engine* engine, DevicePtr address, void* handle, DefaultStream null) {
  if (address == 0) return kOk;
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  const Block* block = engine->memory.find(address);
  if (block == nullptr || block->base != address || block->on_host())
    return kInvalidValue;
  OpSpec spec;
  spec.effect = [engine, address] { engine->memory.release(address); };
  return engine->enqueue(stream, std::move(spec));
}

int allocate_pitched(Engine* engine, ApiCall* call, DevicePtr* out, size_t* pitch,
                     size_t width, size_t height) {
  if (pitch == nullptr || width == 0 || height == 0) return kInvalidValue;
  *pitch = (width + 511) / 512 * 512;
  int error = allocate(engine, MemoryKind::kDevice, *pitch * height, false, out);
  call->sleep(cost(engine, &Config::malloc_ns));
  return error;
}

void sleep_for(int64_t ns) { sleep_until(now_ns() + ns); }

size_t element_bytes(const ArrayDescriptor& array) {
  // CUarray_format: 1, 8 are bytes; 2, 9, 0x10 half words; 3, 10, 0x20 words.
  bool byte = array.format == 1 || array.format == 8;
  bool half = array.format == 2 || array.format == 9 || array.format == 0x10;
  return (byte ? 1 : half ? 2 : 4) * size_t{array.channels};
}

}  // namespace

SIM_EXPORT int cuMemAlloc_v2(DevicePtr* out, size_t bytes) {
  SIM_CALL();
  int error = allocate(engine, MemoryKind::kDevice, bytes, false, out);
  call.sleep(cost(engine, &Config::malloc_ns));
  return call.done(error);
}

SIM_EXPORT int cuMemAllocPitch_v2(DevicePtr* out, size_t* pitch, size_t width,
                                  size_t height, unsigned) {
  SIM_CALL();
  return call.done(allocate_pitched(engine, &call, out, pitch, width, height));
}

SIM_EXPORT int cuMemAllocManaged(DevicePtr* out, size_t bytes, unsigned) {
  SIM_CALL();
  int error = allocate(engine, MemoryKind::kManaged, bytes, false, out);
  call.sleep(cost(engine, &Config::malloc_ns));
  return call.done(error);
}

SIM_EXPORT int cuArrayCreate_v2(void** array, const ArrayDescriptor* descriptor) {
  SIM_CALL();
  if (array == nullptr || descriptor == nullptr) return call.done(kInvalidValue);
  size_t rows = descriptor->height == 0 ? 1 : descriptor->height;
  size_t bytes = descriptor->width * rows * element_bytes(*descriptor);
  DevicePtr address = 0;
  int error = allocate(engine, MemoryKind::kDevice, bytes, false, &address);
  if (error == kOk) *array = as_pointer(address);
  call.sleep(cost(engine, &Config::malloc_ns));
  return call.done(error);
}

SIM_EXPORT int cuArrayDestroy(void* array) {
  SIM_CALL();
  int error = free_device(engine, as_device(array));
  return call.done(error);
}

SIM_EXPORT int cuMemFree_v2(DevicePtr address) {
  SIM_CALL();
  int error = free_device(engine, address);
  if (error == kOk && address != 0) sleep_for(cost(engine, &Config::free_ns));
  return call.done(error);
}

SIM_EXPORT int cuMemHostAlloc(void** out, size_t bytes, unsigned) {
  SIM_CALL();
  return call.done(allocate_host(engine, &call, out, bytes));
}

SIM_EXPORT int cuMemAllocHost_v2(void** out, size_t bytes) {
  SIM_CALL();
  return call.done(allocate_host(engine, &call, out, bytes));
}

SIM_EXPORT int cuMemFreeHost(void* pointer) {
  SIM_CALL();
  int error = free_host(engine, pointer, MemoryKind::kPinned);
  if (error == kOk) sleep_for(cost(engine, &Config::host_alloc_ns));
  return call.done(error);
}

SIM_EXPORT int cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned) {
  SIM_CALL();
  Context* context = this_thread().context();
  if (pointer == nullptr || bytes == 0) return call.done(kInvalidValue);
  if (context == nullptr) return call.done(kInvalidContext);
  Block block;
  block.base = as_device(pointer);
  block.size = bytes;
  block.kind = MemoryKind::kRegistered;
  block.device = context->device;
  block.context = context->id;
  bool fresh;
  {
    Lock lock(engine->mutex());
    fresh = engine->memory.adopt(block);
  }
  call.sleep(cost(engine, &Config::host_alloc_ns));
  return call.done(fresh ? kOk : 712);  // already registered
}

SIM_EXPORT int cuMemHostUnregister(void* pointer) {
  SIM_CALL();
  int error = free_host(engine, pointer, MemoryKind::kRegistered);
  if (error == kOk) sleep_for(cost(engine, &Config::host_alloc_ns));
  return call.done(error == kInvalidValue ? 713 : error);  // not registered
}

SIM_EXPORT int cuMemHostGetDevicePointer_v2(DevicePtr* out, void* pointer, unsigned) {
  SIM_CALL();
  Lock lock(engine->mutex());
  if (engine->memory.find(as_device(pointer)) == nullptr)
    return call.done(kInvalidValue);
  *out = as_device(pointer);
  return call.done(kOk);
}

SIM_EXPORT int cuMemHostGetFlags(unsigned* flags, void* pointer) {
  SIM_CALL();
  Lock lock(engine->mutex());
  if (engine->memory.find(as_device(pointer)) == nullptr)
    return call.done(kInvalidValue);
  *flags = 0;
  return call.done(kOk);
}

SIM_STREAM_API(cuMemAllocAsync, _ptsz, (DevicePtr * out, size_t bytes, void* stream),
               return call.done(allocate_async(engine, out, bytes, stream, kNull));)

SIM_STREAM_API(cuMemAllocFromPoolAsync, _ptsz,
               (DevicePtr * out, size_t bytes, void*, void* stream),
               return call.done(allocate_async(engine, out, bytes, stream, kNull));)

SIM_STREAM_API(cuMemFreeAsync, _ptsz, (DevicePtr address, void* stream),
               return call.done(free_async(engine, address, stream, kNull));)

// One pool for each device, and every pool is that one.
SIM_EXPORT int cuDeviceGetDefaultMemPool(void** pool, int device) {
  SIM_CALL();
  Lock lock(engine->mutex());
  *pool = engine->primary_context(static_cast<uint32_t>(device));
  return call.done(kOk);
}
SIM_EXPORT int cuDeviceGetMemPool(void** pool, int device) {
  SIM_CALL();
  Lock lock(engine->mutex());
  *pool = engine->primary_context(static_cast<uint32_t>(device));
  return call.done(kOk);
}
SIM_EXPORT int cuMemPoolCreate(void** pool, const void*) {
  SIM_CALL();
  Lock lock(engine->mutex());
  *pool = engine->primary_context(0);
  return call.done(kOk);
}
SIM_EXPORT int cuMemPoolDestroy(void*) {
  SIM_CALL();
  return call.done(kOk);
}
SIM_EXPORT int cuMemPoolTrimTo(void*, size_t) {
  SIM_CALL();
  return call.done(kOk);
}
SIM_EXPORT int cuMemPoolSetAttribute(void*, int, void*) {
  SIM_CALL();
  return call.done(kOk);
}
SIM_EXPORT int cuMemPoolGetAttribute(void*, int, void* value) {
  SIM_CALL();
  *static_cast<uint64_t*>(value) = 0;
  return call.done(kOk);
}

SIM_EXPORT int cuMemGetInfo_v2(size_t* free_bytes, size_t* total) {
  SIM_CALL();
  Context* context = this_thread().context();
  if (context == nullptr) return call.done(kInvalidContext);
  Lock lock(engine->mutex());
  *total = static_cast<size_t>(engine->config().memory_bytes);
  *free_bytes =
      *total - static_cast<size_t>(engine->memory.device_bytes(context->device));
  return call.done(kOk);
}
