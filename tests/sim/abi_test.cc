// Our declarations of the CUDA ABI against the vendor's headers, where a toolkit is
// installed. It is the compiler that tests; the test case reports that it did.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "tests/sim/driver/api.h"

namespace lull::sim {
namespace {

#define SAME_PLACE(ours, our_field, theirs, their_field) \
  static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field))

static_assert(sizeof(LaunchConfig) == sizeof(CUlaunchConfig));
SAME_PLACE(LaunchConfig, grid, CUlaunchConfig, gridDimX);
SAME_PLACE(LaunchConfig, shared, CUlaunchConfig, sharedMemBytes);
SAME_PLACE(LaunchConfig, stream, CUlaunchConfig, hStream);

static_assert(sizeof(Copy2d) == sizeof(CUDA_MEMCPY2D));
SAME_PLACE(Copy2d, src_device, CUDA_MEMCPY2D, srcDevice);
SAME_PLACE(Copy2d, dst_type, CUDA_MEMCPY2D, dstMemoryType);
SAME_PLACE(Copy2d, dst_device, CUDA_MEMCPY2D, dstDevice);
SAME_PLACE(Copy2d, width, CUDA_MEMCPY2D, WidthInBytes);

static_assert(sizeof(Copy3d) == sizeof(CUDA_MEMCPY3D));
SAME_PLACE(Copy3d, src_device, CUDA_MEMCPY3D, srcDevice);
SAME_PLACE(Copy3d, src_height, CUDA_MEMCPY3D, srcHeight);
SAME_PLACE(Copy3d, dst_x, CUDA_MEMCPY3D, dstXInBytes);
SAME_PLACE(Copy3d, dst_device, CUDA_MEMCPY3D, dstDevice);
SAME_PLACE(Copy3d, depth, CUDA_MEMCPY3D, Depth);

static_assert(sizeof(ArrayDescriptor) == sizeof(CUDA_ARRAY_DESCRIPTOR));

static_assert(int{kInvalidHandle} == int{CUDA_ERROR_INVALID_HANDLE});
static_assert(int{kNotReady} == int{CUDA_ERROR_NOT_READY});
static_assert(int{kCaptureUnsupported} == int{CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED});
static_assert(int{kCaptureUnjoined} == int{CUDA_ERROR_STREAM_CAPTURE_UNJOINED});
static_assert(int{kCaptureImplicit} == int{CUDA_ERROR_STREAM_CAPTURE_IMPLICIT});
static_assert(int{kCaptureWrongThread} == int{CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD});

// The runtime reads and writes through the real header's types here.
TEST(SimAbi, DevicePropertiesLieWhereTheHeadersOfThisToolkitSay) {
  cudaDeviceProp properties;
  ASSERT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_STREQ(properties.name, "Lull Simulated Device");
  EXPECT_EQ(properties.totalGlobalMem, size_t{80} << 30);
  EXPECT_EQ(properties.major, 9);
  EXPECT_EQ(properties.warpSize, 32);
  EXPECT_EQ(properties.maxThreadsPerBlock, 1024);
  EXPECT_EQ(properties.maxThreadsDim[2], 64);
  EXPECT_EQ(properties.multiProcessorCount, 132);
  EXPECT_EQ(properties.concurrentKernels, 1);
  EXPECT_EQ(properties.asyncEngineCount, 2);
  EXPECT_EQ(properties.l2CacheSize, 50 << 20);
  EXPECT_EQ(properties.maxThreadsPerMultiProcessor, 2048);
  EXPECT_EQ(properties.sharedMemPerMultiprocessor, size_t{228} << 10);
  EXPECT_EQ(properties.regsPerMultiprocessor, 64 << 10);
  EXPECT_EQ(properties.sharedMemPerBlockOptin, size_t{227} << 10);
  EXPECT_EQ(properties.maxBlocksPerMultiProcessor, 32);
  EXPECT_EQ(properties.memoryPoolsSupported, 1);
}

TEST(SimAbi, PointerAttributesLieWhereTheHeadersOfThisToolkitSay) {
  void *device = nullptr, *pinned = nullptr;
  ASSERT_EQ(cudaMalloc(&device, 4096), cudaSuccess);
  ASSERT_EQ(cudaMallocHost(&pinned, 4096), cudaSuccess);
  cudaPointerAttributes attributes;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, device), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeDevice);
  EXPECT_EQ(attributes.device, 0);
  EXPECT_EQ(attributes.devicePointer, device);
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, pinned), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeHost);
  EXPECT_EQ(attributes.hostPointer, pinned);
  int local = 0;
  ASSERT_EQ(cudaPointerGetAttributes(&attributes, &local), cudaSuccess);
  EXPECT_EQ(attributes.type, cudaMemoryTypeUnregistered);
}

TEST(SimAbi, CopiesOfCuboidsReadTheParametersOfThisToolkit) {
  char host[4][4][4], back[2][2][2];
  for (int i = 0; i < 64; ++i) (&host[0][0][0])[i] = static_cast<char>(i);
  void* device = nullptr;
  ASSERT_EQ(cudaMalloc(&device, sizeof host), cudaSuccess);
  ASSERT_EQ(cudaMemcpy(device, host, sizeof host, cudaMemcpyHostToDevice), cudaSuccess);
  cudaMemcpy3DParms parameters = {};
  parameters.srcPtr = {device, 4, 4, 4};
  parameters.srcPos = {1, 2, 1};
  parameters.dstPtr = {back, 2, 2, 2};
  parameters.extent = {2, 2, 2};
  parameters.kind = cudaMemcpyDeviceToHost;
  ASSERT_EQ(cudaMemcpy3D(&parameters), cudaSuccess);
  EXPECT_EQ(back[0][0][0], host[1][2][1]);
  EXPECT_EQ(back[1][1][1], host[2][3][2]);
}

TEST(SimAbi, ErrorsHaveTheNamesOfThisToolkit) {
  EXPECT_STREQ(cudaGetErrorName(cudaErrorStreamCaptureUnsupported),
               "cudaErrorStreamCaptureUnsupported");
  EXPECT_EQ(cudaFree(reinterpret_cast<void*>(64)), cudaErrorInvalidValue);
  EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace lull::sim
