// The exported host-wait hooks, generated from LULL_LIBC_HOOKS.
//
// Each is two functions. The exported one is a test and a jump to the original; the
// compiler keeps it free of a frame because all else lies in its watched twin, which
// it reaches by a jump too: so the twin's frame and return address are the hook's.
//
// The C++ names differ from the exported ones, whose declarations in libc's headers
// ours need not match word by word (exception specifications, attributes).
// lull_own_NAME is the same function, whoever else exports the name
// (attach/targets.cc).
#include "preload/hooks/wait_originals.h"
#include "preload/hooks/wait_recorder.h"

#define LULL_UNPACK(...) __VA_ARGS__

#define LULL_HOOK(result, name, parameters, arguments)                                 \
  extern "C" __attribute__((visibility("default")))                                    \
  result lull_##name parameters __asm__(#name);                                        \
  namespace {                                                                          \
  __attribute__((noinline)) result watched_##name parameters {                         \
    return measure_wait<abi::HookId::k_##name>(                                        \
        __builtin_frame_address(0), __builtin_return_address(0),                       \
        g_wait_originals.name.load(std::memory_order_relaxed), LULL_UNPACK arguments); \
  }                                                                                    \
  }                                                                                    \
  result lull_##name parameters {                                                      \
    if (__builtin_expect(wait_is_watched(), 0)) return watched_##name arguments;       \
    return g_wait_originals.name.load(std::memory_order_relaxed) arguments;            \
  }                                                                                    \
  extern "C" __attribute__((visibility("hidden"), alias(#name)))                       \
  result lull_own_##name parameters;
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_HOOK, result, name, parameters, arguments)

namespace lull {
LULL_LIBC_HOOKS(LULL_ROW)
}  // namespace lull
