// What kind of memory a pointer points to, asked of CUDA itself.
#pragma once

#include "preload/hooks/cuda_call.h"

namespace lull {

enum class PointerKind : uint8_t {
  kDevice,    // device or managed memory, or no pointer at all (arrays, symbols)
  kPinned,    // host memory that the device can reach
  kPageable,  // any other host memory
  kUnknown,   // CUDA would not say
};

// Asks the driver, or else the library that made the call, which is initialised by now.
// Leaves the thread's last CUDA error and a stream capture alone.
PointerKind kind_of(Library library, const void* pointer);

}  // namespace lull
