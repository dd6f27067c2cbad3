// A library that works on the GPU for whoever loads it, as PyTorch's does for Python: a
// step is a few kernels and a read-back.
//
// A call and its SITE mark stay on one line:
// clang-format off
#include "tests/puppets/cuda.h"

KERNEL(work_kernel, {})

namespace {

float* g_data = nullptr;
cudaStream_t g_stream = nullptr;

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void work_begin() {
  CHECK(cudaMalloc(&g_data, 4096));
  CHECK(cudaStreamCreate(&g_stream));
}

__attribute__((visibility("default"))) float work_step(int kernels) {
  for (int i = 0; i < kernels; ++i) {
    LAUNCH(work_kernel, 8, 64, g_stream, g_data);
  }
  float value = 0;
  CHECK(cudaMemcpyAsync(&value, g_data, sizeof value, cudaMemcpyDeviceToHost, g_stream));
  CHECK(cudaStreamSynchronize(g_stream));
  return value;
}
}
