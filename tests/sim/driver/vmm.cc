// Virtual memory management: a handle is an amount of memory, a mapping makes a
// piece of a reserved range device memory. Contents belong to the range, not to
// the handle: mapping one handle twice does not share bytes.
#include <sys/mman.h>

#include "tests/sim/driver/api.h"

using namespace lull::sim;

namespace {

constexpr size_t kGranularity = 2 << 20;

}  // namespace

SIM_EXPORT int cuMemGetAllocationGranularity(size_t* granularity, const void*, int) {
  SIM_CALL();
  *granularity = kGranularity;
  return call.done(kOk);
}

SIM_EXPORT int cuMemAddressReserve(DevicePtr* out, size_t bytes, size_t, DevicePtr,
                                   unsigned long long) {
  SIM_CALL();
  if (out == nullptr || bytes == 0 || bytes % kGranularity != 0) {
    return call.done(kInvalidValue);
  }
  void* range = mmap(nullptr, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) return call.done(kOutOfMemory);
  *out = as_device(range);
  return call.done(kOk);
}

SIM_EXPORT int cuMemAddressFree(DevicePtr address, size_t bytes) {
  SIM_CALL();
  return call.done(munmap(as_pointer(address), bytes) == 0 ? kOk : kInvalidValue);
}

// The handle of an allocation is its size and a serial number.
SIM_EXPORT int cuMemCreate(unsigned long long* handle, size_t bytes, const void*,
                           unsigned long long) {
  SIM_CALL();
  if (handle == nullptr || bytes == 0 || bytes % kGranularity != 0) {
    return call.done(kInvalidValue);
  }
  *handle = engine->new_id();
  int64_t ns;
  {
    Lock lock(engine->mutex());
    ns = engine->config().malloc_ns;
  }
  call.sleep(ns);
  return call.done(kOk);
}

SIM_EXPORT int cuMemRelease(unsigned long long handle) {
  SIM_CALL();
  return call.done(handle != 0 ? kOk : kInvalidValue);
}

SIM_EXPORT int cuMemMap(DevicePtr address, size_t bytes, size_t, unsigned long long,
                        unsigned long long) {
  SIM_CALL();
  Context* context = this_thread().context();
  if (context == nullptr) return call.done(kInvalidContext);
  Block block;
  block.base = address;
  block.size = bytes;
  block.kind = MemoryKind::kDevice;
  block.device = context->device;
  block.context = context->id;
  block.mapped = true;
  Lock lock(engine->mutex());
  if (mprotect(as_pointer(address), bytes, PROT_READ | PROT_WRITE) != 0) {
    return call.done(kInvalidValue);
  }
  return call.done(engine->memory.adopt(block) ? kOk : kInvalidValue);
}

SIM_EXPORT int cuMemUnmap(DevicePtr address, size_t bytes) {
  SIM_CALL();
  std::vector<OpPtr> ops;
  {
    Lock lock(engine->mutex());
    const Block* block = engine->memory.find(address);
    if (block == nullptr || !block->mapped) return call.done(kInvalidValue);
    ops = engine->unfinished_on_device(block->device);
  }
  engine->wait(ops);
  Lock lock(engine->mutex());
  for (DevicePtr at = address; at < address + bytes;) {
    const Block* block = engine->memory.find(at);
    if (block == nullptr) break;
    at = block->base + block->size;
    engine->memory.release(block->base);
  }
  mprotect(as_pointer(address), bytes, PROT_NONE);
  return call.done(kOk);
}

SIM_EXPORT int cuMemSetAccess(DevicePtr, size_t, const void*, size_t) {
  SIM_CALL();
  return call.done(kOk);
}
