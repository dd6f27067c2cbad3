// What the files of the stand-in libcudnn.so.9 share.
#pragma once

#include <cstddef>
#include <cstdint>

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace lull::sim {

// cudnnStatus_t.
inline constexpr int kCudnnSuccess = 0;
inline constexpr int kCudnnBadParam = 2000;
inline constexpr int kCudnnNotSupported = 3000;
inline constexpr int kCudnnExecutionFailed = 5000;

// cudnnHandle_t.
struct CudnnHandle {
  void* stream = nullptr;
};

}  // namespace lull::sim
