// Launches, copies and waits from where C++ puts most between a line and the runtime:
// kernels that are templates, static, of C, in namespaces, with the name of a function;
// lambdas behind std::function, in an algorithm and on a std::thread; calls that the
// toolkit's headers wrap. Each call that lull should name stands on a line marked SITE.
// clang-format off
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

constexpr int kSteps = 50;

__global__ void plain(float* data) { data[threadIdx.x] += 1; }
template <typename T> __global__ void filled(T* data, T value) { data[threadIdx.x] = value; }
extern "C" __global__ void of_c(float* data) { data[threadIdx.x] *= 2; }
static __global__ void own(float* data) { data[threadIdx.x] -= 1; }
namespace {
template <typename T> struct Tag {};
template <typename T> __global__ void hidden(float* data, T) { data[threadIdx.x] -= 2; }
}
namespace deep {
__global__ void named(float* data) { data[threadIdx.x] -= 3; }
}

struct Freed {
  void operator()(float* block) const { cudaFree(block); }  // SITE
};

// Of the same name as its kernel.
static void named(float* data) {
  deep::named<<<4, 64>>>(data);  // SITE
}

static void step(float* data, cudaStream_t stream) {
  plain<<<4, 64, 0, stream>>>(data);  // SITE
  filled<<<4, 64, 0, stream>>>(data, 1.0f);  // SITE
  of_c<<<4, 64, 0, stream>>>(data);  // SITE
  own<<<4, 64, 0, stream>>>(data);  // SITE
  hidden<<<4, 64, 0, stream>>>(data, Tag<int>());  // SITE
  float loss = 0;
  cudaMemcpyAsync(&loss, data, sizeof loss, cudaMemcpyDeviceToHost, stream);  // SITE
  cudaStreamSynchronize(stream);  // SITE
  void* arguments[] = {&data};
  cudaLaunchKernel(plain, dim3(4), dim3(64), arguments, 0, stream);  // SITE
  cudaEvent_t event;
  cudaEventCreate(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  cudaEventSynchronize(event);  // SITE
  cudaEventDestroy(event);
}

int main() {
  float* data = nullptr;
  cudaMalloc(&data, 4096);  // SITE
  cudaStream_t stream = nullptr;
  cudaStreamCreate(&stream);
  std::vector<int> steps(kSteps);
  std::function<void(int)> run = [&](int) { step(data, stream); };
  for (int i : steps) run(i);
  std::for_each(steps.begin(), steps.end(), [&](int) {
    filled<<<4, 64>>>(data, 2.0f);  // SITE
    named(data);
    cudaDeviceSynchronize();  // SITE
  });
  std::thread([&] {
    for (int i = 0; i < kSteps; ++i) {
      plain<<<4, 64>>>(data);  // SITE
      cudaDeviceSynchronize();  // SITE
      float* more = nullptr;
      cudaMalloc(&more, 1 << 20);  // SITE
      std::unique_ptr<float, Freed> freed(more);
    }
  }).join();
  bool good = cudaGetLastError() == cudaSuccess;
  cudaStreamDestroy(stream);  // SITE
  cudaFree(data);  // SITE
  std::puts(good ? "done" : "failed");
  return good ? 0 : 1;
}
