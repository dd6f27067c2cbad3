// How the simulated runtime reaches the driver: as the real one does, it loads
// libcuda.so.1 at the first call and keeps pointers to its functions. None of
// these calls can be interposed.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tests/sim/engine/api_call.h"

namespace lull::sim {

struct LaunchConfig;
struct Copy2d;
struct Copy3d;
struct ArrayDescriptor;

// clang-format off
#define SIM_DRIVER_FUNCTIONS(X) \
  X(cuDriverGetVersion, (int*)) \
  X(cuDeviceGetCount, (int*)) \
  X(cuDeviceGetAttribute, (int*, int, int)) \
  X(cuDeviceGetName, (char*, int, int)) \
  X(cuDeviceTotalMem_v2, (size_t*, int)) \
  X(cuDeviceGetUuid_v2, (void*, int)) \
  X(cuDeviceGetPCIBusId, (char*, int, int)) \
  X(cuDeviceGetByPCIBusId, (int*, const char*)) \
  X(cuDeviceCanAccessPeer, (int*, int, int)) \
  X(cuDeviceGetP2PAttribute, (int*, int, int, int)) \
  X(cuDeviceGetDefaultMemPool, (void**, int)) \
  X(cuDeviceGetMemPool, (void**, int)) \
  X(cuMemPoolCreate, (void**, const void*)) \
  X(cuMemPoolDestroy, (void*)) \
  X(cuMemPoolTrimTo, (void*, size_t)) \
  X(cuMemPoolSetAttribute, (void*, int, void*)) \
  X(cuMemPoolGetAttribute, (void*, int, void*)) \
  X(cuDevicePrimaryCtxRetain, (void**, int)) \
  X(cuDevicePrimaryCtxReset_v2, (int)) \
  X(cuDevicePrimaryCtxGetState, (int, unsigned*, int*)) \
  X(cuCtxGetCurrent, (void**)) \
  X(cuCtxSetCurrent, (void*)) \
  X(cuCtxGetDevice, (int*)) \
  X(cuCtxGetStreamPriorityRange, (int*, int*)) \
  X(cuCtxSetLimit, (int, size_t)) \
  X(cuCtxSynchronize, ()) \
  X(cuCtxEnablePeerAccess, (void*, unsigned)) \
  X(cuLibraryLoadData, (void**, const void*, void*, void*, unsigned, void*, void*, unsigned)) \
  X(cuLibraryUnload, (void*)) \
  X(cuLibraryGetKernel, (void**, void*, const char*)) \
  X(cuFuncGetAttribute, (int*, int, void*)) \
  X(cuFuncSetAttribute, (void*, int, int)) \
  X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, (int*, void*, int, size_t, unsigned)) \
  X(cuMemAlloc_v2, (uint64_t*, size_t)) \
  X(cuMemAllocPitch_v2, (uint64_t*, size_t*, size_t, size_t, unsigned)) \
  X(cuMemAllocManaged, (uint64_t*, size_t, unsigned)) \
  X(cuMemFree_v2, (uint64_t)) \
  X(cuArrayCreate_v2, (void**, const ArrayDescriptor*)) \
  X(cuArrayDestroy, (void*)) \
  X(cuMemHostAlloc, (void**, size_t, unsigned)) \
  X(cuMemFreeHost, (void*)) \
  X(cuMemHostRegister_v2, (void*, size_t, unsigned)) \
  X(cuMemHostUnregister, (void*)) \
  X(cuMemHostGetDevicePointer_v2, (uint64_t*, void*, unsigned)) \
  X(cuMemHostGetFlags, (unsigned*, void*)) \
  X(cuMemGetInfo_v2, (size_t*, size_t*)) \
  X(cuPointerGetAttributes, (unsigned, const int*, void**, uint64_t)) \
  X(cuStreamCreateWithPriority, (void**, unsigned, int)) \
  X(cuStreamDestroy_v2, (void*)) \
  X(cuThreadExchangeStreamCaptureMode, (int*)) \
  X(cuEventCreate, (void**, unsigned)) \
  X(cuEventDestroy_v2, (void*)) \
  X(cuEventQuery, (void*)) \
  X(cuEventSynchronize, (void*)) \
  X(cuEventElapsedTime_v2, (float*, void*, void*)) \
  X(cuGraphCreate, (void**, unsigned)) \
  X(cuGraphDestroy, (void*)) \
  X(cuGraphGetNodes, (void*, void**, size_t*)) \
  X(cuGraphNodeGetType, (void*, int*)) \
  X(cuGraphInstantiateWithFlags, (void**, void*, unsigned long long)) \
  X(cuGraphExecDestroy, (void*)) \
  X(cuGraphExecUpdate_v2, (void*, void*, void*)) \
  X(cuMemcpyPeer, (uint64_t, void*, uint64_t, void*, size_t)) \
  X(cuMemcpyPeerAsync, (uint64_t, void*, uint64_t, void*, size_t, void*)) \
  X(cuProfilerStart, ()) \
  X(cuProfilerStop, ()) \
  X(cuGetProcAddress_v2, (const char*, void**, int, unsigned long, int*))

// Those with a variant for per-thread default streams.
#define SIM_DRIVER_STREAM_FUNCTIONS(X) \
  X(cuLaunchKernel, _ptsz, (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**)) \
  X(cuLaunchKernelEx, _ptsz, (const LaunchConfig*, void*, void**, void**)) \
  X(cuLaunchCooperativeKernel, _ptsz, (void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**)) \
  X(cuLaunchHostFunc, _ptsz, (void*, void (*)(void*), void*)) \
  X(cuStreamAddCallback, _ptsz, (void*, void (*)(void*, int, void*), void*, unsigned)) \
  X(cuStreamSynchronize, _ptsz, (void*)) \
  X(cuStreamQuery, _ptsz, (void*)) \
  X(cuStreamWaitEvent, _ptsz, (void*, void*, unsigned)) \
  X(cuStreamGetFlags, _ptsz, (void*, unsigned*)) \
  X(cuStreamGetPriority, _ptsz, (void*, int*)) \
  X(cuStreamGetId, _ptsz, (void*, unsigned long long*)) \
  X(cuStreamGetDevice, _ptsz, (void*, int*)) \
  X(cuStreamBeginCapture_v2, _ptsz, (void*, int)) \
  X(cuStreamEndCapture, _ptsz, (void*, void**)) \
  X(cuStreamIsCapturing, _ptsz, (void*, int*)) \
  X(cuStreamGetCaptureInfo_v3, _ptsz, (void*, int*, unsigned long long*, void**, void***, void**, size_t*)) \
  X(cuStreamUpdateCaptureDependencies_v2, _ptsz, (void*, void**, const void*, size_t, unsigned)) \
  X(cuEventRecordWithFlags, _ptsz, (void*, void*, unsigned)) \
  X(cuGraphLaunch, _ptsz, (void*, void*)) \
  X(cuGraphUpload, _ptsz, (void*, void*)) \
  X(cuMemAllocAsync, _ptsz, (uint64_t*, size_t, void*)) \
  X(cuMemAllocFromPoolAsync, _ptsz, (uint64_t*, size_t, void*, void*)) \
  X(cuMemFreeAsync, _ptsz, (uint64_t, void*)) \
  X(cuMemcpy, _ptds, (uint64_t, uint64_t, size_t)) \
  X(cuMemcpyHtoD_v2, _ptds, (uint64_t, const void*, size_t)) \
  X(cuMemcpyDtoH_v2, _ptds, (void*, uint64_t, size_t)) \
  X(cuMemcpyDtoD_v2, _ptds, (uint64_t, uint64_t, size_t)) \
  X(cuMemcpy2D_v2, _ptds, (const Copy2d*)) \
  X(cuMemcpy3D_v2, _ptds, (const Copy3d*)) \
  X(cuMemcpyAsync, _ptsz, (uint64_t, uint64_t, size_t, void*)) \
  X(cuMemcpyHtoDAsync_v2, _ptsz, (uint64_t, const void*, size_t, void*)) \
  X(cuMemcpyDtoHAsync_v2, _ptsz, (void*, uint64_t, size_t, void*)) \
  X(cuMemcpyDtoDAsync_v2, _ptsz, (uint64_t, uint64_t, size_t, void*)) \
  X(cuMemcpy2DAsync_v2, _ptsz, (const Copy2d*, void*)) \
  X(cuMemcpy3DAsync_v2, _ptsz, (const Copy3d*, void*)) \
  X(cuMemsetD8_v2, _ptds, (uint64_t, unsigned char, size_t)) \
  X(cuMemsetD8Async, _ptsz, (uint64_t, unsigned char, size_t, void*)) \
  X(cuMemsetD2D8_v2, _ptds, (uint64_t, size_t, unsigned char, size_t, size_t)) \
  X(cuMemsetD2D8Async, _ptsz, (uint64_t, size_t, unsigned char, size_t, size_t, void*))
// clang-format on

// A driver function in both flavours, chosen by the runtime function that calls.
template <typename Function>
struct StreamFunction {
  Function legacy;
  Function per_thread;
  Function operator[](bool per_thread_default) const {
    return per_thread_default ? per_thread : legacy;
  }
};

struct Driver {
#define X(name, parameters) int(*name) parameters;
  SIM_DRIVER_FUNCTIONS(X)
#undef X
#define X(name, suffix, parameters) StreamFunction<int(*) parameters> name;
  SIM_DRIVER_STREAM_FUNCTIONS(X)
#undef X
  int (*start)();
  void (*begin_api)(ApiFrame*, const char*, NameCache*);
  void (*end_api)(ApiFrame*, int);
};

// Null if there is no simulated libcuda.so.1, or one that lacks a function.
const Driver* load_driver();

}  // namespace lull::sim
