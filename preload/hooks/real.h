// The originals of the CUDA hooks: who is called once lull has had its look.
//
// A cudart of each major version may be mapped at the same time, so an original
// belongs to a Library, not to a name: a caller of CUDA 13 must never reach the
// runtime of CUDA 12. Slots are filled at the first call, or by dlsym.cc when a
// program looks a function up by itself, and never change afterwards.
#pragma once

#include <atomic>

#include "preload/abi/hook_list.h"
#include "preload/hooks/cuda_types.h"

namespace lull {

enum class Library : uint8_t { kCudart11, kCudart12, kCudart13, kDriver, kCupti };
inline constexpr int kCudartCount = 3;
inline constexpr int kLibraryCount = 5;

// Which of them holds this address; false for any other object.
bool library_of(const void* address, Library* library);

using Original = std::atomic<void*>;

// Cold. Fills `slot` with the original of `name` in `library` and returns it, or
// nullptr if the process has none. Looks in the order of the loader first, so
// that other interposers keep their place; then among the objects that only
// their loader can see (RTLD_LOCAL, or still inside a dlopen). Asks the loader itself
// only where several objects that were loaded later define the function. Sees to it
// that the object is pinned, because the slot outlives any dlclose. Preserves errno.
__attribute__((cold, noinline)) void* resolve_original(Library library,
                                                       const char* name,
                                                       Original& slot);

// Cold. Makes `found` the original of `slot` unless there is one already, sees to it
// that its object is pinned, and returns the original that holds from now on.
__attribute__((cold, noinline)) void* remember_original(Original& slot, void* found);

// Hot: one load.
template <typename Function>
inline Function* original_of(Library library, const char* name, Original& slot) {
  void* original = slot.load(std::memory_order_acquire);
  if (__builtin_expect(original == nullptr, 0)) {
    original = resolve_original(library, name, slot);
  }
  return reinterpret_cast<Function*>(original);
}

#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) k_##name,
enum class RuntimeIndex : uint16_t { LULL_RUNTIME_HOOKS(LULL_ROW) kCount };
enum class DriverIndex : uint16_t { LULL_DRIVER_HOOKS(LULL_ROW) kCount };
#undef LULL_ROW

extern Original g_runtime_originals[kCudartCount][size_t(RuntimeIndex::kCount)];
extern Original g_driver_originals[size_t(DriverIndex::kCount)];

}  // namespace lull
