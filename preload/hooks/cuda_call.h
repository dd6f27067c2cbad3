// The core of every CUDA wrapper, generated from the rows of abi/hook_list.h.
//
// A wrapper checks whether there is anything to record and calls straight
// through if not. Else it times the original, which is called exactly once with
// unchanged arguments, and hands what the row says about the call to record().
//
// A file of one family defines LULL_ON_<family> for its own rows as
// LULL_RUNTIME_WRAPPERS or LULL_DRIVER_WRAPPER and leaves the other families
// empty, and expands the lists inside namespace lull (see sync.cc, the shortest).
#pragma once

#include "preload/abi/hook_list.h"
#include "preload/cupti/gpu.h"
#include "preload/entry/state.h"
#include "preload/hooks/cuda_types.h"
#include "preload/hooks/guard.h"
#include "preload/hooks/real.h"
#include "preload/hooks/wrapper_table.h"
#include "preload/support/clock.h"

namespace lull {

// One call that just returned, on its own thread, under its Guard.
struct CudaCall {
  char* segment;
  uint64_t start_ns;
  uint64_t end_ns;
  abi::HookId hook;
  Library library;
  bool failed;
};

constexpr Layer layer_below(Library library) {
  return library == Library::kDriver ? Layer::kDriver : Layer::kRuntime;
}

// Nothing is recorded here, and nothing is left to be collected: no Guard is needed.
inline bool is_inert() {
  return g_state->mode.load(std::memory_order_relaxed) == Mode::kInert &&
         !gpu_is_restless();
}

inline uint64_t bits(const void* handle) { return reinterpret_cast<uint64_t>(handle); }
inline const void* as_pointer(unsigned long long address) {
  return reinterpret_cast<const void*>(address);
}

}  // namespace lull

// Protected: exported, but the tables of dlsym.cc mean this very wrapper even
// when another preloaded library exports the same name.
#define LULL_EXPORT extern "C" __attribute__((visibility("protected")))

// Where a call is recorded. memory.cc has another one.
#define LULL_SEGMENT recording_segment_or_start(Trigger::kGpuCall)

#define LULL_WRAPPER(symbol, library, slot, missing, hook, parameters, arguments, \
                     event)                                                       \
  LULL_EXPORT int symbol parameters {                                             \
    auto* original = original_of<int parameters>(Library::library, #hook, slot);  \
    if (__builtin_expect(original == nullptr, 0)) return missing;                 \
    if (__builtin_expect(is_inert(), 0)) return original arguments;               \
    Guard guard(__builtin_frame_address(0), layer_below(Library::library));       \
    char* segment = guard.outermost() ? LULL_SEGMENT : nullptr;                   \
    if (segment == nullptr) {                                                     \
      if (gpu_is_restless() && guard.outermost()) gpu_settle();                   \
      return original arguments;                                                  \
    }                                                                             \
    uint64_t start = monotonic_ns();                                              \
    if (gpu_is_due(start)) {                                                      \
      gpu_poll(segment);                                                          \
      start = monotonic_ns();                                                     \
    }                                                                             \
    int status = original arguments;                                              \
    uint64_t end = monotonic_ns();                                                \
    guard.own_work(__builtin_frame_address(0));                                   \
    record(CudaCall{segment, start, end, abi::HookId::k_##hook, Library::library, \
                    status != 0},                                                 \
           event);                                                                \
    return status;                                                                \
  }                                                                               \
  LULL_TABLE_ENTRY(hook, symbol, library, slot)

// The three wrappers of a runtime function, each under its own version node.
#define LULL_RUNTIME_WRAPPERS(id, need, result, name, parameters, arguments, event)  \
  LULL_RUNTIME_WRAPPER(11, "@libcudart.so.11.0", name, parameters, arguments, event) \
  LULL_RUNTIME_WRAPPER(12, "@libcudart.so.12", name, parameters, arguments, event)   \
  LULL_RUNTIME_WRAPPER(13, "@@libcudart.so.13", name, parameters, arguments, event)

#define LULL_RUNTIME_WRAPPER(major, node, name, parameters, arguments, event)         \
  LULL_WRAPPER(lull_##major##_##name, kCudart##major, LULL_RUNTIME_SLOT(major, name), \
               kRuntimeNotSupported, name, parameters, arguments, event)              \
  LULL_VERSION(major, node, name)

#define LULL_RUNTIME_SLOT(major, name) \
  g_runtime_originals[int(Library::kCudart##major)][size_t(RuntimeIndex::k_##name)]

#define LULL_VERSION(major, node, name) \
  asm(".symver lull_" #major "_" #name ", " #name node ", remove");

#define LULL_DRIVER_WRAPPER(id, need, result, name, parameters, arguments, event) \
  LULL_WRAPPER(name, kDriver, g_driver_originals[size_t(DriverIndex::k_##name)],  \
               kDriverNotFound, name, parameters, arguments, event)
