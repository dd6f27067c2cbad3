// The first NaN or infinity that the program reads out of a tensor.
//
// at::_ops::_local_scalar_dense::call is what .item(), float(t), bool(t) and print(t)
// come down to, whatever the device. It answers with a c10::Scalar, which says of
// itself that it holds a floating-point number: the four or eight bytes of a copy
// would not (-1 as an integer has the bits of a NaN).
//
// c10::Scalar (c10/core/Scalar.h) is returned through memory: a 4-byte tag, 0 for a
// double, and from byte 16 on the value (the union holds a complex<double>, which is
// aligned to 16). Unchanged from PyTorch 1.10, the first with at::_ops, to 2.9.
//
// An exception of the original passes through the wrapper, which holds nothing.
#include <stdint.h>
#include <string.h>

#include "preload/abi/hook_list.h"
#include "preload/entry/state.h"
#include "preload/hooks/record.h"
#include "preload/hooks/torch_original.h"

namespace lull {
namespace {

constexpr uint32_t kTagDouble = 0;
constexpr size_t kValueOffset = 16;

TorchOriginal g_local_scalar_dense;

// The segment (its generation) that has had its first one.
std::atomic<uint32_t> g_told{0};

bool is_finite(uint64_t bits) {
  return (bits & 0x7ff0000000000000) != 0x7ff0000000000000;
}

__attribute__((cold, noinline)) void tell(uint64_t bits) {
  ErrnoKeeper keep_errno;
  Guard guard(__builtin_frame_address(0), Layer::kTorch);
  char* segment = recording_segment();
  if (segment == nullptr || !guard.outermost()) return;
  guard.own_work(__builtin_frame_address(0));
  uint32_t generation = g_state->generation.load(std::memory_order_relaxed);
  if (g_told.exchange(generation, std::memory_order_relaxed) == generation) return;
  uint64_t now = monotonic_ns();
  abi::Ref python = python_stack(segment);
  abi::Ref native = native_stack(segment, 0);
  if (abi::Event* event = reserve_event(segment)) {
    *event = {
        .start_ns = now,
        .duration_ns = 0,
        .arg0 = bits,
        .arg1 = 0,
        .py_stack = python,
        .native_stack = native,
        .arg2 = 0,
        .api = static_cast<uint16_t>(
            abi::HookId::k__ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE),
        .type = abi::EventType::kNonFinite,
        .flags = 0,
    };
    commit_event();
  }
  account_self(now);
}

}  // namespace

extern "C" __attribute__((visibility("protected"))) void*
_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE(void* scalar, const void* tensor) {
  auto* original =
      torch_original<decltype(_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE)>(
          "_ZN2at4_ops19_local_scalar_dense4callERKNS_6TensorE",
          __builtin_return_address(0), g_local_scalar_dense);
  // Whoever calls us linked against it, so it is there.
  if (__builtin_expect(original == nullptr, 0)) __builtin_trap();
  void* result = original(scalar, tensor);
  uint32_t tag;
  uint64_t bits;
  memcpy(&tag, scalar, sizeof tag);
  memcpy(&bits, static_cast<const char*>(scalar) + kValueOffset, sizeof bits);
  if (__builtin_expect(tag == kTagDouble && !is_finite(bits), 0)) tell(bits);
  return result;
}

}  // namespace lull
