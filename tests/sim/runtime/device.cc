// Devices, versions, errors.
#include <cstring>

#include "tests/sim/runtime/api.h"

using namespace lull::sim;

namespace {

constexpr int kRuntimeVersion = LULL_SIM_CUDART >= 13 ? 13000 : 12090;

// cudaDeviceProp: where the fields that are filled lie, in each version's layout.
// The fields that version 13 removed moved the others.
struct Field {
  int attribute;  // CUdevice_attribute
  size_t offset12, offset13;
  bool wide;  // size_t, not int
};
constexpr Field kFields[] = {
    {8, 296, 296, true},    // sharedMemPerBlock
    {12, 304, 304, false},  // regsPerBlock
    {10, 308, 308, false},  // warpSize
    {11, 312, 312, true},   // memPitch
    {1, 320, 320, false},   // maxThreadsPerBlock
    {2, 324, 324, false},   // maxThreadsDim
    {3, 328, 328, false},   {4, 332, 332, false}, {5, 336, 336, false},  // maxGridSize
    {6, 340, 340, false},   {7, 344, 344, false}, {9, 352, 352, true},  // totalConstMem
    {75, 360, 360, false},                                              // major
    {76, 364, 364, false},                                              // minor
    {14, 368, 368, true},    // textureAlignment
    {16, 388, 384, false},   // multiProcessorCount
    {19, 400, 392, false},   // canMapHostMemory
    {31, 576, 560, false},   // concurrentKernels
    {33, 584, 568, false},   // pciBusID
    {34, 588, 572, false},   // pciDeviceID
    {40, 600, 584, false},   // asyncEngineCount
    {41, 604, 588, false},   // unifiedAddressing
    {37, 612, 592, false},   // memoryBusWidth
    {38, 616, 596, false},   // l2CacheSize
    {39, 624, 604, false},   // maxThreadsPerMultiProcessor
    {78, 628, 608, false},   // streamPrioritiesSupported
    {81, 640, 624, true},    // sharedMemPerMultiprocessor
    {82, 648, 632, false},   // regsPerMultiprocessor
    {83, 652, 636, false},   // managedMemory
    {89, 676, 656, false},   // concurrentManagedAccess
    {95, 688, 668, false},   // cooperativeLaunch
    {97, 696, 672, true},    // sharedMemPerBlockOptin
    {106, 712, 688, false},  // maxBlocksPerMultiProcessor
    {115, 744, 720, false},  // memoryPoolsSupported
};
constexpr size_t kPropertiesBytes = LULL_SIM_CUDART >= 13 ? 1008 : 1032;
constexpr size_t kUuidOffset = 256, kTotalMemoryOffset = 288;

int properties(const Driver& driver, void* out, int device) {
  if (out == nullptr) return kInvalidValue;
  char* base = static_cast<char*>(out);
  std::memset(base, 0, kPropertiesBytes);
  if (int error = driver.cuDeviceGetName(base, 256, device)) return error;
  driver.cuDeviceGetUuid_v2(base + kUuidOffset, device);
  driver.cuDeviceTotalMem_v2(reinterpret_cast<size_t*>(base + kTotalMemoryOffset),
                             device);
  for (const Field& field : kFields) {
    int value = 0;
    driver.cuDeviceGetAttribute(&value, field.attribute, device);
    char* at = base + (LULL_SIM_CUDART >= 13 ? field.offset13 : field.offset12);
    size_t wide = static_cast<size_t>(value);
    if (field.wide) {
      std::memcpy(at, &wide, sizeof wide);
    } else {
      std::memcpy(at, &value, sizeof value);
    }
  }
  return kSuccess;
}

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {9, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {13, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {21, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {35, "cudaErrorInsufficientDriver",
     "CUDA driver version is insufficient for CUDA runtime version"},
    {52, "cudaErrorMissingConfiguration", "__global__ function call is not configured"},
    {98, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {201, "cudaErrorDeviceUninitialized", "invalid device context"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {500, "cudaErrorSymbolNotFound", "named symbol not found"},
    {600, "cudaErrorNotReady", "device not ready"},
    {704, "cudaErrorPeerAccessAlreadyEnabled", "peer access is already enabled"},
    {712, "cudaErrorHostMemoryAlreadyRegistered",
     "part or all of the requested memory range is already mapped"},
    {713, "cudaErrorHostMemoryNotRegistered",
     "pointer does not correspond to a registered memory region"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge",
     "operation would result in a merge of separate capture sequences"},
    {903, "cudaErrorStreamCaptureUnmatched",
     "capture was not ended in the same stream as it began"},
    {904, "cudaErrorStreamCaptureUnjoined", "capturing stream has unjoined work"},
    {906, "cudaErrorStreamCaptureImplicit",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {907, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "cudaErrorStreamCaptureWrongThread",
     "attempt to terminate a thread-local capture sequence from another thread"},
};

const ErrorText* error_text(int code) {
  for (const ErrorText& known : kErrors) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

int set_device(const Driver& driver, int device) {
  void* context = nullptr;
  if (int error = driver.cuDevicePrimaryCtxRetain(&context, device)) return error;
  if (int error = driver.cuCtxSetCurrent(context)) return error;
  runtime_thread().device = device;
  runtime_thread().bound = true;
  return kSuccess;
}

}  // namespace

SIM_EXPORT int cudaGetDeviceCount(int* count) {
  SIM_CALL();
  int error = driver.cuDeviceGetCount(count);
  return call.done(error == 0 && *count == 0 ? 100 : error);
}
SIM_EXPORT int cudaGetDevice(int* device) {
  SIM_CALL();
  if (device == nullptr) return call.done(kInvalidValue);
  void* context = nullptr;
  driver.cuCtxGetCurrent(&context);
  *device = runtime_thread().device;
  if (context != nullptr) driver.cuCtxGetDevice(device);
  return call.done(kSuccess);
}
SIM_EXPORT int cudaSetDevice(int device) {
  SIM_CALL();
  return call.done(set_device(driver, device));
}
SIM_EXPORT int cudaInitDevice(int device, unsigned, unsigned) {
  SIM_CALL();
  void* context = nullptr;
  return call.done(driver.cuDevicePrimaryCtxRetain(&context, device));
}
SIM_EXPORT int cudaSetDeviceFlags(unsigned) {
  SIM_CALL();
  return call.done(kSuccess);
}
SIM_EXPORT int cudaGetDeviceFlags(unsigned* flags) {
  SIM_CALL();
  *flags = 0;
  return call.done(kSuccess);
}
SIM_EXPORT int cudaDeviceSynchronize(void) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuCtxSynchronize());
}
#if LULL_SIM_CUDART < 13
SIM_EXPORT int cudaThreadSynchronize(void) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuCtxSynchronize());
}
#endif
SIM_EXPORT int cudaDeviceReset(void) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuDevicePrimaryCtxReset_v2(runtime_thread().device));
}
SIM_EXPORT int cudaDeviceGetAttribute(int* value, int attribute, int device) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetAttribute(value, attribute, device));
}
SIM_EXPORT int cudaGetDeviceProperties(void* out, int device) {
  SIM_CALL();
  return call.done(properties(driver, out, device));
}
#if LULL_SIM_CUDART < 13
SIM_EXPORT int cudaGetDeviceProperties_v2(void* out, int device) {
  SIM_CALL();
  return call.done(properties(driver, out, device));
}
#endif
SIM_EXPORT int cudaDeviceGetPCIBusId(char* id, int size, int device) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetPCIBusId(id, size, device));
}
SIM_EXPORT int cudaDeviceGetByPCIBusId(int* device, const char* id) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetByPCIBusId(device, id));
}
SIM_EXPORT int cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuCtxGetStreamPriorityRange(least, greatest));
}
SIM_EXPORT int cudaDeviceSetLimit(int limit, size_t value) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuCtxSetLimit(limit, value));
}
SIM_EXPORT int cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  SIM_CALL();
  return call.done(driver.cuDeviceCanAccessPeer(can, device, peer));
}
SIM_EXPORT int cudaDeviceGetP2PAttribute(int* value, int attribute, int device,
                                         int peer) {
  SIM_CALL();
  return call.done(driver.cuDeviceGetP2PAttribute(value, attribute, device, peer));
}
SIM_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  SIM_CONTEXT_CALL();
  void* context = nullptr;
  if (int error = driver.cuDevicePrimaryCtxRetain(&context, peer))
    return call.done(error);
  return call.done(driver.cuCtxEnablePeerAccess(context, flags));
}

SIM_EXPORT int cudaRuntimeGetVersion(int* version) {
  *version = kRuntimeVersion;
  return kSuccess;
}
SIM_EXPORT int cudaDriverGetVersion(int* version) {
  const Driver* driver = load_driver();
  *version = 0;
  return driver != nullptr ? driver->cuDriverGetVersion(version) : kSuccess;
}

SIM_EXPORT int cudaGetLastError(void) {
  int error = runtime_thread().last_error;
  runtime_thread().last_error = 0;
  return error;
}
SIM_EXPORT int cudaPeekAtLastError(void) { return runtime_thread().last_error; }
SIM_EXPORT const char* cudaGetErrorName(int error) {
  const ErrorText* known = error_text(error);
  return known != nullptr ? known->name : "unrecognized error code";
}
SIM_EXPORT const char* cudaGetErrorString(int error) {
  const ErrorText* known = error_text(error);
  return known != nullptr ? known->text : "unrecognized error code";
}

SIM_EXPORT int cudaProfilerStart(void) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuProfilerStart());
}
SIM_EXPORT int cudaProfilerStop(void) {
  SIM_CONTEXT_CALL();
  return call.done(driver.cuProfilerStop());
}

SIM_STREAM_API(cudaGetDriverEntryPoint, _ptsz,
               (const char* symbol, void** out, unsigned long long flags, int* status),
               {
                 unsigned long thread =
                     kPerThread ? 2 : static_cast<unsigned long>(flags);
                 return call.done(driver.cuGetProcAddress_v2(
                     symbol, out, kRuntimeVersion, thread, status));
               })
SIM_STREAM_API(cudaGetDriverEntryPointByVersion, _ptsz,
               (const char* symbol, void** out, unsigned version,
                unsigned long long flags, int* status),
               {
                 unsigned long thread =
                     kPerThread ? 2 : static_cast<unsigned long>(flags);
                 return call.done(driver.cuGetProcAddress_v2(
                     symbol, out, static_cast<int>(version), thread, status));
               })
