// at::getStepCallbacks: which callbacks a RecordFunction that begins has to call.
//
// Each RecordFunction of a scope that is no operator's asks it, from its constructor,
// which calls it by name (tried with 1.13 and 2.6.0; the x86-64 wheels of 2.0.1, 2.1.2,
// 2.4.1, 2.8.0, 2.9.1, 2.12.1 and 2.15.0 have that call in their machine code).
// Operators ask another one, getStepCallbacksUnlessEmpty. A few calls a step: an
// optimizer's, a loader's, what the program opens itself.
//
// An exception of the original passes through the wrapper, which holds nothing.
#include <stdint.h>

#include "preload/hooks/torch_original.h"
#include "preload/scopes/record_function.h"

namespace lull {
namespace {

// at::StepCallbacks: not trivial, so that the compiler returns it through memory, in
// whatever register the platform has for that. The original makes it where the caller
// wants it; how long it is, only these two know.
class StepCallbacks {
 public:
  StepCallbacks(const StepCallbacks&) = delete;
  ~StepCallbacks() {}

 private:
  [[maybe_unused]] uintptr_t first_;
};

using GetStepCallbacks = StepCallbacks(uint8_t scope);

#define LULL_GET_STEP_CALLBACKS "_ZN2at16getStepCallbacksENS_11RecordScopeE"

TorchOriginal g_get_step_callbacks;

}  // namespace

// The same object, at the same address, looked at before its maker's caller gets it.
class LookedAt {
 public:
  LookedAt(GetStepCallbacks* original, uint8_t scope, const void* caller)
      : callbacks_(original(scope)) {
    record_function_looks_at(&callbacks_, scope, caller);
  }
  LookedAt(const LookedAt&) = delete;
  ~LookedAt() {}

 private:
  StepCallbacks callbacks_;
};

__attribute__((visibility("protected"))) LookedAt get_step_callbacks(uint8_t scope) asm(
    LULL_GET_STEP_CALLBACKS);

LookedAt get_step_callbacks(uint8_t scope) {
  auto* original = torch_original<GetStepCallbacks>(
      LULL_GET_STEP_CALLBACKS, __builtin_return_address(0), g_get_step_callbacks);
  // Whoever calls us linked against it, so it is there.
  if (__builtin_expect(original == nullptr, 0)) __builtin_trap();
  return LookedAt(original, scope, __builtin_return_address(0));
}

}  // namespace lull
