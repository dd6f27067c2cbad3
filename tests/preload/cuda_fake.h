// Fake CUDA libraries, just enough to see what reaches them. Built three times
// from cuda_fake.cc: libcudart.so.12, libcudart.so.13 (with the vendor's version
// nodes) and libcuda.so.1. Pointers are never followed: their value says what
// memory they mean.
#pragma once

#include <cstdint>

#include "preload/hooks/cuda_types.h"

inline void* const kDeviceMemory = reinterpret_cast<void*>(0x1000);
inline void* const kPinnedMemory = reinterpret_cast<void*>(0x2000);
inline void* const kPageableMemory = reinterpret_cast<void*>(0x3000);
inline void* const kUnaskableMemory = reinterpret_cast<void*>(0x4000);  // error
inline void* const kStream = reinterpret_cast<void*>(0x77);

struct FakeLog {
  int calls;           // of hooked functions, all together
  int result;          // what they return
  int errno_to_leave;  // what they leave in errno
  bool throws;
  int last_error;  // the sticky error of the runtime
  uint64_t arguments[8];
};

// What a caller compiled against one runtime finds under each name.
struct Cudart {
  int (*launch)(const void*, lull::Dim3, lull::Dim3, void**, size_t, void*);
  int (*launch_config)(const lull::LaunchConfig*, const void*, void**);
  int (*device_synchronize)();
  int (*stream_synchronize)(void*);
  int (*memcpy)(void*, const void*, size_t, int);
  int (*memcpy_async)(void*, const void*, size_t, int, void*);
  int (*memset)(void*, int, size_t);
  int (*malloc)(void**, size_t);
  int (*malloc_pitch)(void**, size_t*, size_t, size_t);
  int (*host_alloc)(void**, size_t, unsigned);
  int (*free)(void*);
};

extern "C" {
FakeLog* fake_log_12();
FakeLog* fake_log_13();
FakeLog* fake_log_driver();
// The runtime's launch under a name that nobody hooks.
int fake_launch_13(const void*, lull::Dim3, lull::Dim3, void**, size_t, void*);
const Cudart* caller_12();
const Cudart* caller_13();
}
