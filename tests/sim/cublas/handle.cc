// Handles and their settings.
#include "tests/sim/cublas/api.h"

using namespace lull::sim;

namespace {

CublasHandle* as_handle(void* handle) { return static_cast<CublasHandle*>(handle); }

}  // namespace

SIM_EXPORT int cublasCreate_v2(void** handle) {
  if (handle == nullptr) return kCublasInvalidValue;
  *handle = new CublasHandle;
  return kCublasSuccess;
}
SIM_EXPORT int cublasDestroy_v2(void* handle) {
  delete as_handle(handle);
  return kCublasSuccess;
}
SIM_EXPORT int cublasGetVersion_v2(void*, int* version) {
  *version = 120405;
  return kCublasSuccess;
}
SIM_EXPORT int cublasSetStream_v2(void* handle, void* stream) {
  if (handle == nullptr) return kCublasNotInitialized;
  as_handle(handle)->stream = stream;
  return kCublasSuccess;
}
SIM_EXPORT int cublasGetStream_v2(void* handle, void** stream) {
  if (handle == nullptr) return kCublasNotInitialized;
  *stream = as_handle(handle)->stream;
  return kCublasSuccess;
}
SIM_EXPORT int cublasSetWorkspace_v2(void* handle, void*, size_t) {
  return handle == nullptr ? kCublasNotInitialized : kCublasSuccess;
}
SIM_EXPORT int cublasSetMathMode(void* handle, int mode) {
  if (handle == nullptr) return kCublasNotInitialized;
  as_handle(handle)->math_mode = mode;
  return kCublasSuccess;
}
SIM_EXPORT int cublasGetMathMode(void* handle, int* mode) {
  if (handle == nullptr) return kCublasNotInitialized;
  *mode = as_handle(handle)->math_mode;
  return kCublasSuccess;
}
SIM_EXPORT int cublasSetPointerMode_v2(void* handle, int mode) {
  if (handle == nullptr) return kCublasNotInitialized;
  as_handle(handle)->pointer_mode = mode;
  return kCublasSuccess;
}
SIM_EXPORT int cublasGetPointerMode_v2(void* handle, int* mode) {
  if (handle == nullptr) return kCublasNotInitialized;
  *mode = as_handle(handle)->pointer_mode;
  return kCublasSuccess;
}

SIM_EXPORT const char* cublasGetStatusName(int status) {
  switch (status) {
    case kCublasSuccess:
      return "CUBLAS_STATUS_SUCCESS";
    case kCublasNotInitialized:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case kCublasInvalidValue:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case kCublasExecutionFailed:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
  }
}
SIM_EXPORT const char* cublasGetStatusString(int status) {
  return cublasGetStatusName(status);
}
