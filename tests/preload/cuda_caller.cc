// A library compiled against one fake runtime: its references carry that
// runtime's version node, as those of every real program do. CALLER names its
// only export.
#include "tests/preload/cuda_fake.h"

extern "C" {
int cudaLaunchKernel(const void*, lull::Dim3, lull::Dim3, void**, size_t, void*);
int cudaLaunchKernelExC(const lull::LaunchConfig*, const void*, void**);
int cudaDeviceSynchronize();
int cudaStreamSynchronize(void*);
int cudaMemcpy(void*, const void*, size_t, int);
int cudaMemcpyAsync(void*, const void*, size_t, int, void*);
int cudaMemset(void*, int, size_t);
int cudaMalloc(void**, size_t);
int cudaMallocPitch(void**, size_t*, size_t, size_t);
int cudaHostAlloc(void**, size_t, unsigned);
int cudaFree(void*);

const Cudart* CALLER() {
  static const Cudart table = {cudaLaunchKernel,
                               cudaLaunchKernelExC,
                               cudaDeviceSynchronize,
                               cudaStreamSynchronize,
                               cudaMemcpy,
                               cudaMemcpyAsync,
                               cudaMemset,
                               cudaMalloc,
                               cudaMallocPitch,
                               cudaHostAlloc,
                               cudaFree};
  return &table;
}
}
