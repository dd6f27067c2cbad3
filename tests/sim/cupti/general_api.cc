// Everything that is neither activity nor callback API.
#include "tests/sim/cupti/api.h"
#include "tests/sim/cupti/link.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/cupti/tracer.h"

using namespace lull::sim::cupti;

namespace {

struct ResultText {
  int result;
  const char* text;
};
constexpr ResultText kResults[] = {
    {kSuccess, "CUPTI_SUCCESS"},
    {kErrorInvalidParameter, "CUPTI_ERROR_INVALID_PARAMETER"},
    {2, "CUPTI_ERROR_INVALID_DEVICE"},
    {kErrorInvalidContext, "CUPTI_ERROR_INVALID_CONTEXT"},
    {7, "CUPTI_ERROR_INVALID_OPERATION"},
    {8, "CUPTI_ERROR_OUT_OF_MEMORY"},
    {kErrorSizeNotSufficient, "CUPTI_ERROR_PARAMETER_SIZE_NOT_SUFFICIENT"},
    {11, "CUPTI_ERROR_API_NOT_IMPLEMENTED"},
    {kErrorMaxLimitReached, "CUPTI_ERROR_MAX_LIMIT_REACHED"},
    {13, "CUPTI_ERROR_NOT_READY"},
    {kErrorNotCompatible, "CUPTI_ERROR_NOT_COMPATIBLE"},
    {15, "CUPTI_ERROR_NOT_INITIALIZED"},
    {kErrorQueueEmpty, "CUPTI_ERROR_QUEUE_EMPTY"},
    {19, "CUPTI_ERROR_INVALID_HANDLE"},
    {kErrorInvalidStream, "CUPTI_ERROR_INVALID_STREAM"},
    {kErrorInvalidKind, "CUPTI_ERROR_INVALID_KIND"},
    {23, "CUPTI_ERROR_DISABLED"},
    {26, "CUPTI_ERROR_HARDWARE_BUSY"},
    {kErrorNotSupported, "CUPTI_ERROR_NOT_SUPPORTED"},
    {33, "CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED"},
    {35, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"},
    {kErrorMultipleSubscribers, "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"},
    {43, "CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED"},
    {kErrorUnknown, "CUPTI_ERROR_UNKNOWN"},
};

const Driver* driver_with_device() {
  const Driver* driver = load_driver();
  return driver != nullptr && driver->device_count() != 0 ? driver : nullptr;
}

int context_ids(const void* context, uint32_t* id, uint32_t* device) {
  const Driver* driver = driver_with_device();
  bool known = driver != nullptr && driver->context_id(context, id, device) != 0;
  return known ? kSuccess : kErrorInvalidContext;
}

}  // namespace

SIM_EXPORT int cuptiGetVersion(uint32_t* version) {
  CUPTI_CALL();
  if (version == nullptr) return finish(kErrorInvalidParameter);
  *version = settings().version;
  return kSuccess;
}

SIM_EXPORT int cuptiGetResultString(int result, const char** text) {
  CUPTI_CALL();
  if (text == nullptr) return finish(kErrorInvalidParameter);
  for (const ResultText& known : kResults) {
    if (known.result != result) continue;
    *text = known.text;
    return kSuccess;
  }
  return finish(kErrorInvalidParameter);
}

SIM_EXPORT int cuptiGetLastError(void) { return take_last_error(); }

SIM_EXPORT int cuptiGetTimestamp(uint64_t* timestamp) {
  CUPTI_CALL();
  if (timestamp == nullptr) return finish(kErrorInvalidParameter);
  *timestamp = Tracer::get().clock().now();
  return kSuccess;
}

SIM_EXPORT int cuptiSetThreadIdType(int type) {
  CUPTI_CALL();
  if (type != 0 && type != 1) return finish(kErrorNotSupported);
  Tracer::get().system_thread_ids = type == 1;
  return kSuccess;
}

SIM_EXPORT int cuptiGetThreadIdType(int* type) {
  CUPTI_CALL();
  if (type == nullptr) return finish(kErrorInvalidParameter);
  *type = Tracer::get().system_thread_ids ? 1 : 0;
  return kSuccess;
}

SIM_EXPORT int cuptiGetContextId(const void* context, uint32_t* id) {
  CUPTI_CALL();
  uint32_t device;
  if (id == nullptr) return finish(kErrorInvalidParameter);
  return finish(context_ids(context, id, &device));
}

SIM_EXPORT int cuptiGetDeviceId(const void* context, uint32_t* device) {
  CUPTI_CALL();
  uint32_t id;
  if (device == nullptr) return finish(kErrorInvalidParameter);
  return finish(context_ids(context, &id, device));
}

SIM_EXPORT int cuptiGetStreamIdEx(const void* context, const void* stream,
                                  uint8_t per_thread, uint32_t* id) {
  CUPTI_CALL();
  if (id == nullptr) return finish(kErrorInvalidParameter);
  const Driver* driver = driver_with_device();
  if (driver == nullptr) return finish(kErrorInvalidContext);
  bool known = driver->stream_id(context, stream, per_thread, id) != 0;
  return finish(known ? kSuccess : kErrorInvalidStream);
}

SIM_EXPORT int cuptiGetStreamId(const void* context, const void* stream, uint32_t* id) {
  return cuptiGetStreamIdEx(context, stream, 0, id);
}

SIM_EXPORT int cuptiFinalize(void) {
  CUPTI_CALL();
  if (in_client()) misuse("hangs: cuptiFinalize from a buffer callback");
  // As on an H100: 23 ms where it had matrix products to do (docs/gpu_results.md).
  if (const Driver* driver = load_driver()) driver->wait_for_devices();
  Tracer::get().finalize();
  return kSuccess;
}
