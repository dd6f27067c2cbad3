#include "preload/hooks/pointer_kind.h"

namespace lull {
namespace {

constexpr int kSuccess = 0;
constexpr int kInvalidValue = 1;  // CUDA_ERROR_INVALID_VALUE: memory unknown to CUDA
constexpr int kAttributeMemoryType = 2;  // CU_POINTER_ATTRIBUTE_MEMORY_TYPE

enum RuntimeMemoryType : int {
  kUnregistered = 0,
  kHost = 1,
  kOnDevice = 2,
  kManaged = 3
};

// cudaPointerAttributes: 24 bytes in CUDA 11 and 12, 88 in CUDA 13.
struct PointerAttributes {
  int type;
  char rest[252];
};

struct Queries {
  Original attributes, peek_error;
  Original get_error;
};
Queries g_runtime[kCudartCount];
Original g_driver_attribute;

PointerKind ask_runtime(Library library, const void* pointer) {
  Queries& queries = g_runtime[static_cast<int>(library)];
  auto* attributes_of = original_of<int(PointerAttributes*, const void*)>(
      library, "cudaPointerGetAttributes", queries.attributes);
  auto* peek = original_of<int()>(library, "cudaPeekAtLastError", queries.peek_error);
  auto* clear = original_of<int()>(library, "cudaGetLastError", queries.get_error);
  if (attributes_of == nullptr || peek == nullptr || clear == nullptr) {
    return PointerKind::kUnknown;
  }
  // An error that the program has not looked at yet must stay; one of ours must
  // not. With one pending the two could not be told apart.
  if (peek() != kSuccess) return PointerKind::kUnknown;
  PointerAttributes attributes{};
  if (attributes_of(&attributes, pointer) != kSuccess) {
    clear();
    return PointerKind::kUnknown;
  }
  switch (attributes.type) {
    case kUnregistered:
      return PointerKind::kPageable;
    case kHost:
      return PointerKind::kPinned;
    case kOnDevice:
    case kManaged:
      return PointerKind::kDevice;
    default:
      return PointerKind::kUnknown;
  }
}

PointerKind ask_driver(const void* pointer) {
  auto* attribute_of = original_of<int(void*, int, DevicePointer)>(
      Library::kDriver, "cuPointerGetAttribute", g_driver_attribute);
  if (attribute_of == nullptr) return PointerKind::kUnknown;
  int type = 0;
  int status = attribute_of(&type, kAttributeMemoryType, bits(pointer));
  if (status == kInvalidValue) return PointerKind::kPageable;
  if (status != kSuccess) return PointerKind::kUnknown;
  return type == kDriverMemoryHost ? PointerKind::kPinned : PointerKind::kDevice;
}

}  // namespace

PointerKind kind_of(Library library, const void* pointer) {
  if (pointer == nullptr) return PointerKind::kDevice;
  // The driver first, also for calls of the runtime, which has it loaded: questions to
  // the runtime would stand in the traces that torch.profiler takes.
  PointerKind kind = ask_driver(pointer);
  if (kind != PointerKind::kUnknown || library == Library::kDriver) return kind;
  return ask_runtime(library, pointer);
}

}  // namespace lull
