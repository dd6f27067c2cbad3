// What the files of the stand-in libcublas.so.12 share.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/sim/cublas/gemm.h"

#define SIM_EXPORT extern "C" __attribute__((visibility("default")))

namespace lull::sim {

// cublasStatus_t.
inline constexpr int kCublasSuccess = 0;
inline constexpr int kCublasNotInitialized = 1;
inline constexpr int kCublasInvalidValue = 7;
inline constexpr int kCublasExecutionFailed = 13;
inline constexpr int kCublasNotSupported = 15;

// cublasHandle_t. PyTorch hands the same handle to cublasLt.
struct CublasHandle {
  void* stream = nullptr;
  int math_mode = 0;
  int pointer_mode = 0;
};

}  // namespace lull::sim
