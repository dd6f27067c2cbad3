// cuGetProcAddress, error texts, and the profiler switches.
#include <dlfcn.h>

#include <cstring>
#include <string>

#include "tests/sim/driver/api.h"

using namespace lull::sim;

namespace {

// Names whose newest version is not what every caller means: from which CUDA
// version on a name stands for which function. Newest first.
struct Version {
  const char* name;
  int since;
  const char* function;
};
constexpr Version kVersions[] = {
    {"cuCtxSynchronize", 13000, "cuCtxSynchronize_v2"},
    {"cuCtxSynchronize", 0, "cuCtxSynchronize"},
    {"cuCtxCreate", 13000, "cuCtxCreate_v4"},
    {"cuCtxCreate", 0, "cuCtxCreate_v2"},
    {"cuStreamGetCaptureInfo", 12030, "cuStreamGetCaptureInfo_v3"},
    {"cuStreamGetCaptureInfo", 0, "cuStreamGetCaptureInfo_v2"},
    {"cuStreamUpdateCaptureDependencies", 12030,
     "cuStreamUpdateCaptureDependencies_v2"},
    {"cuStreamUpdateCaptureDependencies", 0, "cuStreamUpdateCaptureDependencies"},
    {"cuGraphInstantiate", 11040, "cuGraphInstantiateWithFlags"},
    {"cuGetProcAddress", 12000, "cuGetProcAddress_v2"},
    {"cuGetProcAddress", 0, "cuGetProcAddress"},
};

struct ErrorText;

constexpr unsigned long kPerThreadFlag = 2;  // CU_GET_PROC_ADDRESS_PER_THREAD_...

// This library, whatever stands before it in the program's symbol search: the
// real driver answers with its own functions too.
const ErrorText* error_text(int code);

void* own_handle() {
  static void* handle = [] {
    Dl_info info;
    dladdr(reinterpret_cast<void*>(&error_text), &info);
    return dlopen(info.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  }();
  return handle;
}

void* find(const std::string& name) { return dlsym(own_handle(), name.c_str()); }

void* find_version(const std::string& base, bool per_thread) {
  if (per_thread) {
    for (const char* suffix : {"_ptsz", "_ptds"}) {
      if (void* function = find(base + suffix)) return function;
    }
  }
  return find(base);
}

void* resolve(const char* name, int version, bool per_thread) {
  for (const Version& known : kVersions) {
    if (std::strcmp(known.name, name) == 0 && version >= known.since) {
      return find_version(known.function, per_thread);
    }
  }
  if (void* function = find_version(std::string(name) + "_v2", per_thread))
    return function;
  return find_version(name, per_thread);
}

int get(const char* name, void** out, int version, unsigned long flags, int* status) {
  if (name == nullptr || out == nullptr) return kInvalidValue;
  *out = resolve(name, version, (flags & kPerThreadFlag) != 0);
  if (status != nullptr) *status = *out != nullptr ? 0 : 1;  // 1: symbol not found
  return *out != nullptr ? kOk : kNotFound;
}

struct ErrorText {
  int code;
  const char* name;
  const char* text;
};
constexpr ErrorText kErrors[] = {
    {kOk, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kNotSupported, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {kCaptureUnsupported, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {kCaptureInvalidated, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {kCaptureImplicit, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
};

const ErrorText* error_text(int code) {
  for (const ErrorText& known : kErrors) {
    if (known.code == code) return &known;
  }
  return nullptr;
}

}  // namespace

SIM_EXPORT int cuGetProcAddress(const char* name, void** out, int version,
                                unsigned long flags) {
  return get(name, out, version, flags, nullptr);
}

SIM_EXPORT int cuGetProcAddress_v2(const char* name, void** out, int version,
                                   unsigned long flags, int* status) {
  return get(name, out, version, flags, status);
}

SIM_EXPORT int cuGetErrorName(int error, const char** name) {
  const ErrorText* known = error_text(error);
  *name = known != nullptr ? known->name : nullptr;
  return known != nullptr ? kOk : kInvalidValue;
}

SIM_EXPORT int cuGetErrorString(int error, const char** text) {
  const ErrorText* known = error_text(error);
  *text = known != nullptr ? known->text : nullptr;
  return known != nullptr ? kOk : kInvalidValue;
}

// No hidden tables: libraries that carry a runtime of their own (cuBLAS, cuDNN)
// ask for them, and are not simulated.
SIM_EXPORT int cuGetExportTable(const void** table, const void*) {
  *table = nullptr;
  return kNotFound;
}

SIM_EXPORT int cuProfilerStart(void) {
  SIM_CALL();
  return call.done(kOk);
}
SIM_EXPORT int cuProfilerStop(void) {
  SIM_CALL();
  return call.done(kOk);
}
