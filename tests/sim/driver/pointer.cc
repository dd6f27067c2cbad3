// What a pointer is.
#include "tests/sim/driver/api.h"

using namespace lull::sim;

namespace {

template <typename T>
int put(void* out, T value) {
  *static_cast<T*>(out) = value;
  return kOk;
}

// CUpointer_attribute; memory types: 1 host, 2 device.
int attribute(Engine* engine, void* out, int what, DevicePtr address) {
  const Block* block = engine->memory.find(address);
  if (block == nullptr) return kInvalidValue;
  switch (what) {
    case 1:
      return put<void*>(out, nullptr);
    case 2:
      return put<unsigned>(out, block->on_host() ? 1 : 2);
    case 3:
      return put<DevicePtr>(out, address);
    case 4:
      if (block->kind == MemoryKind::kDevice) return kInvalidValue;
      return put<DevicePtr>(out, address);
    case 7:
      return put<uint64_t>(out, block->base);
    case 8:
      return put<unsigned>(out, block->kind == MemoryKind::kManaged);
    case 9:
      return put<int>(out, static_cast<int>(block->device));
    case 11:
      return put<DevicePtr>(out, block->base);
    case 12:
      return put<size_t>(out, block->size);
    case 13:
      return put<unsigned char>(out, 1);
    default:
      return kNotSupported;
  }
}

}  // namespace

SIM_EXPORT int cuPointerGetAttribute(void* out, int what, DevicePtr address) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(attribute(engine, out, what, address));
}

SIM_EXPORT int cuPointerGetAttributes(unsigned count, const int* what, void** out,
                                      DevicePtr address) {
  SIM_CALL();
  Lock lock(engine->mutex());
  // An unknown pointer is no error here: its memory type is 0.
  for (unsigned i = 0; i < count; ++i) {
    if (attribute(engine, out[i], what[i], address) != kOk && what[i] == 2) {
      put<unsigned>(out[i], 0);
    }
  }
  return call.done(kOk);
}

SIM_EXPORT int cuMemGetAddressRange_v2(DevicePtr* base, size_t* bytes,
                                       DevicePtr address) {
  SIM_CALL();
  Lock lock(engine->mutex());
  const Block* block = engine->memory.find(address);
  if (block == nullptr) return call.done(kNotFound);
  if (base != nullptr) *base = block->base;
  if (bytes != nullptr) *bytes = block->size;
  return call.done(kOk);
}
