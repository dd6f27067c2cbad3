// Copies and memsets. Whether the host stood still depends on what the other
// side is: a blocking copy to or from the host waits, and so does an "async" one
// whose host side is pageable, because the driver stages it. Those are sync
// points. Copies and memsets within the device are submitted and return.
#include "preload/hooks/cuda_record.h"
#include "preload/hooks/pointer_kind.h"

namespace lull {
namespace {

using abi::CopyKind;

// A null side stands for device memory without an address: array or symbol.
struct Copied {
  const void* stream;
  const void* dst;
  const void* src;
  uint64_t bytes;
  int kind;  // CudaCopyKind, or what the program says
  bool async;
};

inline Copied copied(const void* dst, const void* src, size_t bytes, int kind) {
  return {nullptr, dst, src, bytes, kind, false};
}
inline Copied copied_async(const void* stream, const void* dst, const void* src,
                           size_t bytes, int kind) {
  return {stream, dst, src, bytes, kind, true};
}
inline Copied copied_to_device(const void* src, size_t bytes, int kind) {
  return {nullptr, nullptr, src, bytes, kind, false};
}
inline Copied copied_to_device_async(const void* stream, const void* src, size_t bytes,
                                     int kind) {
  return {stream, nullptr, src, bytes, kind, true};
}
inline Copied copied_from_device(const void* dst, size_t bytes, int kind) {
  return {nullptr, dst, nullptr, bytes, kind, false};
}
inline Copied copied_from_device_async(const void* stream, const void* dst,
                                       size_t bytes, int kind) {
  return {stream, dst, nullptr, bytes, kind, true};
}
// Memsets too: nothing but the device takes part.
inline Copied on_device(const void* stream, uint64_t bytes) {
  return {stream, nullptr, nullptr, bytes, kCopyDeviceToDevice, true};
}

inline Copied copied_3d_async(const void* stream, const Memcpy3DParms* p) {
  if (p == nullptr) return on_device(stream, 0);
  // With an array the width counts elements of a size that is not ours to know.
  bool linear = p->src_array == nullptr && p->dst_array == nullptr;
  uint64_t bytes = linear ? p->extent.width * p->extent.height * p->extent.depth : 0;
  return {stream,
          p->dst_array == nullptr ? p->dst.pointer : nullptr,
          p->src_array == nullptr ? p->src.pointer : nullptr,
          bytes,
          p->kind,
          true};
}

// The driver says of each side of a 2D or 3D copy what it is.
inline const void* side(int type, const void* host, DevicePointer device) {
  if (type == kDriverMemoryHost) return host;
  return type == kDriverMemoryUnified ? as_pointer(device) : nullptr;
}
inline int driver_kind(int dst_type, int src_type) {
  if (dst_type == kDriverMemoryUnified || src_type == kDriverMemoryUnified) {
    return kCopyDefault;
  }
  bool to_host = dst_type == kDriverMemoryHost;
  bool from_host = src_type == kDriverMemoryHost;
  if (to_host) return from_host ? kCopyHostToHost : kCopyDeviceToHost;
  return from_host ? kCopyHostToDevice : kCopyDeviceToDevice;
}
template <typename Parameters>
Copied driver_copy(const void* stream, const Parameters& p, uint64_t bytes) {
  return {stream,
          side(p.dst_type, p.dst_host, p.dst_device),
          side(p.src_type, p.src_host, p.src_device),
          bytes,
          driver_kind(p.dst_type, p.src_type),
          true};
}
inline Copied copied_2d_async(const void* stream, const DriverMemcpy2D* p) {
  if (p == nullptr) return on_device(stream, 0);
  return driver_copy(stream, *p, p->width * p->height);
}
inline Copied copied_3d_async(const void* stream, const DriverMemcpy3D* p) {
  if (p == nullptr) return on_device(stream, 0);
  return driver_copy(stream, *p, p->width * p->height * p->depth);
}

inline Copied blocking(Copied copy) {
  copy.async = false;
  return copy;
}
inline Copied copied_2d(const DriverMemcpy2D* p) {
  return blocking(copied_2d_async(nullptr, p));
}
template <typename Parameters>
Copied copied_3d(const Parameters* p) {
  return blocking(copied_3d_async(nullptr, p));
}

bool is_host(PointerKind kind) {
  return kind == PointerKind::kPinned || kind == PointerKind::kPageable;
}

struct Verdict {
  CopyKind kind;
  PointerKind host;  // of the host side; kDevice when there is none
};

// Host to host: one pageable side makes it pageable.
PointerKind slower(PointerKind a, PointerKind b) {
  return a == PointerKind::kPageable ? a : b;
}

Verdict judge_default(PointerKind dst, PointerKind src) {
  if (dst == PointerKind::kUnknown || src == PointerKind::kUnknown) {
    return {CopyKind::kUnknown, PointerKind::kUnknown};
  }
  if (is_host(dst) && is_host(src)) return {CopyKind::kHostToHost, slower(dst, src)};
  if (is_host(dst)) return {CopyKind::kDeviceToHost, dst};
  if (is_host(src)) return {CopyKind::kHostToDevice, src};
  return {CopyKind::kDeviceToDevice, PointerKind::kDevice};
}

// A failed call tells nothing about its pointers: none is asked after.
Verdict judge(const CudaCall& call, const Copied& copy) {
  auto ask = [&](const void* pointer) {
    return call.failed ? PointerKind::kUnknown : kind_of(call.library, pointer);
  };
  switch (copy.kind) {
    case kCopyDeviceToDevice:
      return {CopyKind::kDeviceToDevice, PointerKind::kDevice};
    case kCopyHostToDevice:
      return {CopyKind::kHostToDevice, ask(copy.src)};
    case kCopyDeviceToHost:
      return {CopyKind::kDeviceToHost, ask(copy.dst)};
    case kCopyHostToHost:
      return {CopyKind::kHostToHost, slower(ask(copy.dst), ask(copy.src))};
    default:
      return judge_default(ask(copy.dst), ask(copy.src));
  }
}

bool host_waited(const Copied& copy, const Verdict& verdict) {
  if (verdict.kind == CopyKind::kDeviceToDevice) return false;
  if (verdict.kind == CopyKind::kHostToHost) return true;
  return !copy.async || verdict.host == PointerKind::kPageable;
}

uint8_t host_flag(PointerKind host) {
  if (host == PointerKind::kPinned) return abi::kFlagPinned;
  return host == PointerKind::kPageable ? abi::kFlagPageable : 0;
}

void record(const CudaCall& call, const Copied& copy) {
  t_thread.watched = 1;  // a thread that the GPU waits for
  Verdict verdict = judge(call, copy);
  EventParts parts{abi::EventType::kCopyAsync, host_flag(verdict.host),
                   bits(copy.stream), copy.bytes, static_cast<uint32_t>(verdict.kind)};
  if (!host_waited(copy, verdict)) return commit_with_tip(call, parts);
  parts.type = abi::EventType::kSync;
  commit_with_stacks(call, parts);
}

}  // namespace

#define LULL_ON_launch(...)
#define LULL_ON_sync(...)
#define LULL_ON_memory(...)
#define LULL_ON_life(...)
#define LULL_ROW(id, family, ...) LULL_ON_##family(id, __VA_ARGS__)

#define LULL_ON_copy LULL_RUNTIME_WRAPPERS
LULL_RUNTIME_HOOKS(LULL_ROW)
#undef LULL_ON_copy

#define LULL_ON_copy LULL_DRIVER_WRAPPER
LULL_DRIVER_HOOKS(LULL_ROW)

}  // namespace lull
