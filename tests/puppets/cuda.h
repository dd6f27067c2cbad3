// One source, two ways to compile it.
//
// By nvcc: ordinary CUDA; KERNEL is a __global__ function, LAUNCH is <<<>>>.
// By any C++ compiler, where there is no CUDA toolkit: the few declarations of the
// runtime that the puppets use, and a hand-written stand-in for what nvcc emits: a
// kernel is a host stub, registered with the runtime before main and launched
// through cudaLaunchKernel. Kernels have no code then, so those programs run on
// the simulated device only.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>

#ifdef __CUDACC__

#include <cuda_runtime.h>

#define KERNEL(name, ...) __global__ void name(float* data) __VA_ARGS__
#define LAUNCH(name, blocks, threads, stream, data) \
  name<<<blocks, threads, 0, stream>>>(data)

#else

#include <cstdint>

// The names are those of the runtime's headers.
struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
using cudaError_t = int;
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
inline constexpr cudaError_t cudaSuccess = 0;
inline constexpr int cudaMemcpyHostToDevice = 1;
inline constexpr int cudaMemcpyDeviceToHost = 2;
inline constexpr int cudaStreamNonBlocking = 1;
inline constexpr int cudaStreamCaptureModeGlobal = 0;

// As in the runtime's headers: a program that asks for per-thread default streams
// calls other functions.
#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#define PUPPET_PTSZ(name) name##_ptsz
#else
#define PUPPET_PTSZ(name) name
#endif
#define cudaLaunchKernel PUPPET_PTSZ(cudaLaunchKernel)
#define cudaMemcpyAsync PUPPET_PTSZ(cudaMemcpyAsync)
#define cudaMemsetAsync PUPPET_PTSZ(cudaMemsetAsync)
#define cudaStreamSynchronize PUPPET_PTSZ(cudaStreamSynchronize)
#define cudaEventRecord PUPPET_PTSZ(cudaEventRecord)
#define cudaStreamWaitEvent PUPPET_PTSZ(cudaStreamWaitEvent)

extern "C" {
void** __cudaRegisterFatBinary(void*);
void __cudaRegisterFatBinaryEnd(void**);
void __cudaRegisterFunction(void**, const char*, char*, const char*, int, void*, void*,
                            void*, void*, int*);
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaMalloc(void**, size_t);
cudaError_t cudaFree(void*);
cudaError_t cudaMallocHost(void**, size_t);
cudaError_t cudaFreeHost(void*);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, int, cudaStream_t);
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaStreamBeginCapture(cudaStream_t, int);
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t*);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t*, cudaGraph_t,
                                          unsigned long long);
cudaError_t cudaGraphLaunch(cudaGraphExec_t, cudaStream_t);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t);
cudaError_t cudaGraphDestroy(cudaGraph_t);
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned);
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaGetLastError(void);
const char* cudaGetErrorName(cudaError_t);
}

template <typename T>
cudaError_t cudaMalloc(T** out, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(out), bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** out, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(out), bytes);
}

struct PuppetKernel {
  PuppetKernel(const void* stub, const char* name) {
    static int image;
    void** binary = __cudaRegisterFatBinary(&image);
    __cudaRegisterFunction(binary, static_cast<const char*>(stub), nullptr, name, -1,
                           nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(binary);
  }
};

#define KERNEL(name, ...)  \
  static char name##_stub; \
  static PuppetKernel name##_kernel(&name##_stub, #name);
#define LAUNCH(name, blocks, threads, stream, data)                                 \
  do {                                                                              \
    float* argument = data;                                                         \
    void* arguments[] = {&argument};                                                \
    (void)cudaLaunchKernel(&name##_stub, dim3(blocks), dim3(threads), arguments, 0, \
                           stream);                                                 \
  } while (false)

#endif  // __CUDACC__

// Ends the program with the place and the error. The call keeps the line on which
// CHECK stands.
#define CHECK(call)                                           \
  do {                                                        \
    cudaError_t check_error = (call);                         \
    if (check_error != cudaSuccess) {                         \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, \
                   cudaGetErrorName(check_error));            \
      std::exit(1);                                           \
    }                                                         \
  } while (false)
