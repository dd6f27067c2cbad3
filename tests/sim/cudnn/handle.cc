// Version, handles, error texts.
#include <cstdlib>

#include "tests/sim/cudnn/api.h"

using namespace lull::sim;

namespace {

// What PyTorch was built against, by default. Others refuse a version older than
// theirs.
size_t version() {
  static const size_t version = [] {
    const char* text = getenv("LULL_SIM_CUDNN_VERSION");
    return text != nullptr ? strtoul(text, nullptr, 10) : 90100;
  }();
  return version;
}

}  // namespace

SIM_EXPORT size_t cudnnGetVersion() { return version(); }
SIM_EXPORT size_t cudnnGetCudartVersion() { return 12040; }
SIM_EXPORT int cudnnGetProperty(int property, int* value) {
  if (property < 0 || property > 2 || value == nullptr) return kCudnnBadParam;
  const size_t parts[] = {version() / 10000, version() / 100 % 100, version() % 100};
  *value = static_cast<int>(parts[property]);  // major, minor, patch level
  return kCudnnSuccess;
}

SIM_EXPORT int cudnnCreate(void** handle) {
  if (handle == nullptr) return kCudnnBadParam;
  *handle = new CudnnHandle;
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnDestroy(void* handle) {
  delete static_cast<CudnnHandle*>(handle);
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnSetStream(void* handle, void* stream) {
  if (handle == nullptr) return kCudnnBadParam;
  static_cast<CudnnHandle*>(handle)->stream = stream;
  return kCudnnSuccess;
}
SIM_EXPORT int cudnnGetStream(void* handle, void** stream) {
  if (handle == nullptr || stream == nullptr) return kCudnnBadParam;
  *stream = static_cast<CudnnHandle*>(handle)->stream;
  return kCudnnSuccess;
}

SIM_EXPORT const char* cudnnGetErrorString(int status) {
  switch (status) {
    case kCudnnSuccess:
      return "CUDNN_STATUS_SUCCESS";
    case kCudnnBadParam:
      return "CUDNN_STATUS_BAD_PARAM";
    case kCudnnNotSupported:
      return "CUDNN_STATUS_NOT_SUPPORTED";
    case kCudnnExecutionFailed:
      return "CUDNN_STATUS_EXECUTION_FAILED";
    default:
      return "CUDNN_STATUS_UNKNOWN";
  }
}
SIM_EXPORT void cudnnGetLastErrorString(char* text, size_t size) {
  if (size > 0) *text = '\0';
}
