// The functions of PyTorch that our wrappers stand in front of.
#pragma once

#include <atomic>

namespace lull {

using TorchOriginal = std::atomic<void*>;

// The function that the caller would have reached without us: the next one in the
// loader's order, or what the caller's own object sees (PyTorch's libraries come
// in RTLD_LOCAL). Kept for good: PyTorch is never unloaded.
__attribute__((cold, noinline)) void* find_torch_original(const char* name,
                                                          const void* caller,
                                                          TorchOriginal& slot);

// Hot: one load. nullptr when there is nobody to forward to.
template <typename Function>
Function* torch_original(const char* name, const void* caller, TorchOriginal& slot) {
  void* original = slot.load(std::memory_order_acquire);
  if (__builtin_expect(original == nullptr, 0)) {
    original = find_torch_original(name, caller, slot);
  }
  return reinterpret_cast<Function*>(original);
}

}  // namespace lull
