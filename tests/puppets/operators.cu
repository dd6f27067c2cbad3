// Launches as PyTorch's operators do: from functions with the names of its
// dispatcher's, and from a node of its backward graph. Counts are in
// tests/integration/operators_test.py.
#include <unistd.h>

#include "tests/puppets/cuda.h"

KERNEL(gemm_kernel, { data[threadIdx.x] += 1; })
KERNEL(add_kernel, { data[threadIdx.x] += 1; })

namespace {

constexpr int kSteps = 10;

// Keeps the call before it from being the last thing that its function does.
void return_here() { asm volatile("" ::: "memory"); }

}  // namespace

namespace at::_ops {

struct addmm {
  __attribute__((noinline)) static void redispatch(float* data, cudaStream_t stream) {
    LAUNCH(gemm_kernel, 64, 256, stream, data);
    LAUNCH(add_kernel, 64, 256, stream, data);
    return_here();
  }
  __attribute__((noinline)) static void call(float* data, cudaStream_t stream) {
    redispatch(data, stream);
    return_here();
  }
};
struct linear {
  __attribute__((noinline)) static void call(float* data, cudaStream_t stream) {
    addmm::call(data, stream);
    return_here();
  }
};
struct mm {
  __attribute__((noinline)) static void call(float* data, cudaStream_t stream) {
    LAUNCH(gemm_kernel, 64, 256, stream, data);
    return_here();
  }
};

}  // namespace at::_ops

namespace torch::autograd::generated {

struct AddmmBackward0 {
  __attribute__((noinline)) static void apply(float* data, cudaStream_t stream) {
    at::_ops::mm::call(data, stream);
    at::_ops::mm::call(data, stream);
    return_here();
  }
};

}  // namespace torch::autograd::generated

int main() {
  float* data = nullptr;
  cudaStream_t stream = nullptr;
  CHECK(cudaMalloc(&data, 1024));
  CHECK(cudaStreamCreate(&stream));
  for (int i = 0; i < kSteps; ++i) {
    at::_ops::linear::call(data, stream);
    at::_ops::addmm::call(data, stream);
    torch::autograd::generated::AddmmBackward0::apply(data, stream);
    LAUNCH(add_kernel, 64, 256, stream, data);
  }
  CHECK(cudaStreamSynchronize(stream));
  CHECK(cudaStreamDestroy(stream));
  CHECK(cudaFree(data));
  // A job is over in 13 ms otherwise: where its libraries lie is read while it is
  // there, and on a busy machine it would be gone, its functions without names.
  usleep(1'000'000);
}
