// Several threads, each on its own default stream (compiled for per-thread default
// streams): no thread's wait is for another's kernels.
#include <thread>
#include <vector>

#include "tests/puppets/cuda.h"
#include "tests/puppets/expected.h"

namespace puppets = lull::puppets;

KERNEL(thread_kernel, { data[threadIdx.x] += 1; })

static void work(float* data) {
  for (int i = 0; i < puppets::kThreadKernels; ++i) {
    LAUNCH(thread_kernel, 1, 64, nullptr, data);
    if ((i + 1) % (puppets::kThreadKernels / puppets::kThreadSyncs) == 0) {
      CHECK(cudaStreamSynchronize(nullptr));
    }
  }
}

int main() {
  std::vector<float*> data(puppets::kThreads);
  for (float*& piece : data) CHECK(cudaMalloc(&piece, 4096));
  std::vector<std::thread> threads;
  for (float* piece : data) threads.emplace_back(work, piece);
  for (std::thread& thread : threads) thread.join();
  for (float* piece : data) CHECK(cudaFree(piece));
  CHECK(cudaGetLastError());
  return 0;
}
