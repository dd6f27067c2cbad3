// Trains at a steady pace until the file that it is given is gone, or for five minutes.
//
// Usage: steady FILE [PAUSE_US [device]]   the pause between two steps, 2000 by default;
//                                          `device`: each waits for the whole device
//
// A call and its SITE mark stay on one line:
// clang-format off
#include "tests/puppets/cuda.h"

#include <unistd.h>

#include <cstdlib>

KERNEL(steady_kernel, { data[threadIdx.x] += 1; })

namespace {

constexpr int kKernels = 4;  // a step
constexpr int kSecondsAtMost = 300;

__attribute__((noinline)) float step(float* model, cudaStream_t stream, bool whole) {
  for (int i = 0; i < kKernels; ++i) {
    LAUNCH(steady_kernel, 64, 256, stream, model);  // SITE: steady_launch
  }
  float loss = -1;
  CHECK(cudaMemcpyAsync(&loss, model, sizeof loss, cudaMemcpyDeviceToHost, stream));  // SITE: steady_copy
  if (whole) CHECK(cudaDeviceSynchronize());
  CHECK(cudaStreamSynchronize(stream));  // SITE: steady_sync
  return loss;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const useconds_t pause_us = argc > 2 ? static_cast<useconds_t>(std::atoi(argv[2])) : 2000;
  float* model = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaMalloc(&model, 1024));
  CHECK(cudaStreamCreate(&stream));
  const long most = kSecondsAtMost * 1000000L / (static_cast<long>(pause_us) + 100);
  for (long i = 0; i < most && access(argv[1], F_OK) == 0; ++i) {
    step(model, stream, argc > 3);
    usleep(pause_us);
  }
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(model));
  std::puts("trained");
  return 7;
}
