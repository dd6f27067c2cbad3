// A library that calls its CUDA runtime as compiled programs do: through its GOT.
// Built for two runtimes, bound when it is loaded and bound when it is used.
#include "tests/preload/cuda_fake.h"

extern "C" {
int cudaLaunchKernel(const void*, lull::Dim3, lull::Dim3, void**, size_t, void*);
int cudaDeviceSynchronize();

__attribute__((visibility("default"))) int CALLER_NAME(int launches) {
  for (int i = 0; i < launches; ++i) {
    cudaLaunchKernel(nullptr, {1, 1, 1}, {1, 1, 1}, nullptr, 0, nullptr);
  }
  return cudaDeviceSynchronize();
}
}
