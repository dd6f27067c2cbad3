// cuptiActivity*: kinds, buffers, flushing, attributes.
#include <cstring>

#include "tests/sim/cupti/api.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/cupti/tracer.h"

using namespace lull::sim::cupti;

namespace {

constexpr uint32_t kForced = 1;  // CUPTI_ACTIVITY_FLAG_FLUSH_FORCED

// CUpti_ActivityAttribute. Those that shape device memory are kept, nothing more.
constexpr int kZeroedOut = 5, kHostPinned = 8, kPerThreadBuffer = 9, kAttributes = 11;

size_t attribute_size(int attribute) {
  bool flag = attribute == kZeroedOut || attribute == kHostPinned ||
              attribute == kPerThreadBuffer;
  return flag ? sizeof(uint8_t) : sizeof(size_t);
}

size_t g_attributes[kAttributes] = {3200000, 8388608, 250, 25000, 250,     0,
                                    3,       3,       0,   0,     16777216};

int check_attribute(int attribute, const size_t* size, const void* value) {
  if (attribute < 0 || attribute >= kAttributes || size == nullptr ||
      value == nullptr) {
    return kErrorInvalidParameter;
  }
  return *size < attribute_size(attribute) ? kErrorSizeNotSufficient : kSuccess;
}

}  // namespace

SIM_EXPORT int cuptiActivityRegisterCallbacks(RequestCallback request,
                                              CompleteCallback complete) {
  CUPTI_V1_CALL();
  if (request == nullptr || complete == nullptr) return finish(kErrorInvalidParameter);
  Output& output = Tracer::get().output();
  std::lock_guard lock(output.mutex());
  output.set_callbacks(request, complete);
  return kSuccess;
}

SIM_EXPORT int cuptiActivityEnable(uint32_t kind) {
  CUPTI_V1_CALL();
  return finish(Tracer::get().enable(kind));
}

SIM_EXPORT int cuptiActivityEnableAndDump(uint32_t kind) {
  CUPTI_V1_CALL();
  int error = Tracer::get().enable(kind);
  if (error == kSuccess) Tracer::get().dump(kind);
  return finish(error);
}

SIM_EXPORT int cuptiActivityDisable(uint32_t kind) {
  CUPTI_V1_CALL();
  return finish(Tracer::get().disable(kind));
}

SIM_EXPORT int cuptiActivityEnableRuntimeApi(uint32_t cbid, uint8_t enable) {
  CUPTI_V1_CALL();
  return finish(Tracer::get().enable_api(kRuntime, cbid, enable != 0));
}

SIM_EXPORT int cuptiActivityEnableDriverApi(uint32_t cbid, uint8_t enable) {
  CUPTI_V1_CALL();
  return finish(Tracer::get().enable_api(kDriver, cbid, enable != 0));
}

SIM_EXPORT int cuptiActivityFlushAll(uint32_t flag) {
  CUPTI_V1_CALL();
  if (in_client()) misuse("hangs: cuptiActivityFlushAll from a buffer callback");
  return finish(Tracer::get().flush((flag & kForced) != 0));
}

SIM_EXPORT int cuptiActivityFlushPeriod(uint32_t ms) {
  CUPTI_V1_CALL();
  if (int error = Tracer::get().attach()) return finish(error);
  Tracer::get().output().set_period(ms);
  return kSuccess;
}

SIM_EXPORT int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid,
                                          void** record) {
  CUPTI_V1_CALL();
  if (buffer == nullptr || record == nullptr) return finish(kErrorInvalidParameter);
  uint32_t version = settings().version;
  auto kind_at = [](const uint8_t* at) {
    uint32_t kind;
    std::memcpy(&kind, at, sizeof kind);
    return kind;
  };
  auto* at = static_cast<uint8_t*>(*record);
  at = at == nullptr ? buffer : at + record_size(kind_at(at), version);
  const uint8_t* end = buffer + valid;
  if (at >= end) return kErrorMaxLimitReached;
  size_t size = record_size(kind_at(at), version);
  if (size == 0 || size > static_cast<size_t>(end - at)) {
    return finish(kErrorInvalidKind);
  }
  *record = at;
  return kSuccess;
}

SIM_EXPORT int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  CUPTI_V1_CALL();
  if (dropped == nullptr) return finish(kErrorInvalidParameter);
  Output& output = Tracer::get().output();
  std::lock_guard lock(output.mutex());
  *dropped = output.take_dropped();
  return kSuccess;
}

SIM_EXPORT int cuptiActivitySetAttribute(int attribute, size_t* size, void* value) {
  CUPTI_V1_CALL();
  if (int error = check_attribute(attribute, size, value)) return finish(error);
  Output& output = Tracer::get().output();
  size_t wide = 0;
  std::memcpy(&wide, value, attribute_size(attribute));
  // No lock: the callback that asks for a buffer may set ZEROED_OUT.
  g_attributes[attribute] = wide;
  if (attribute == kZeroedOut) output.zeroed_by_client = wide != 0;
  if (attribute == kPerThreadBuffer) output.per_thread = wide != 0;
  return kSuccess;
}

SIM_EXPORT int cuptiActivityGetAttribute(int attribute, size_t* size, void* value) {
  CUPTI_V1_CALL();
  if (int error = check_attribute(attribute, size, value)) return finish(error);
  size_t wide = g_attributes[attribute];
  if (attribute == kPerThreadBuffer) wide = Tracer::get().output().per_thread;
  *size = attribute_size(attribute);
  std::memcpy(value, &wide, *size);
  return kSuccess;
}

SIM_EXPORT int cuptiActivityRegisterTimestampCallback(TimestampCallback callback) {
  CUPTI_V1_CALL();
  if (callback == nullptr) return finish(kErrorInvalidParameter);
  std::lock_guard lock(Tracer::get().output().mutex());
  Tracer::get().clock().set_callback(callback);
  return kSuccess;
}

SIM_EXPORT int cuptiActivityEnableAllSyncRecords(uint8_t enable) {
  CUPTI_V1_CALL();
  Tracer::get().all_sync_records = enable != 0;
  return kSuccess;
}

SIM_EXPORT int cuptiActivityEnableCudaEventDeviceTimestamps(uint8_t enable) {
  CUPTI_V1_CALL();
  Tracer::get().event_timestamps = enable != 0;
  return kSuccess;
}

SIM_EXPORT int cuptiActivityPushExternalCorrelationId(uint32_t kind, uint64_t id) {
  CUPTI_V1_CALL();
  auto* ids = external_ids(kind);
  if (ids == nullptr) return finish(kErrorInvalidParameter);
  ids->push_back(id);
  return kSuccess;
}

SIM_EXPORT int cuptiActivityPopExternalCorrelationId(uint32_t kind, uint64_t* last) {
  CUPTI_V1_CALL();
  auto* ids = external_ids(kind);
  if (ids == nullptr) return finish(kErrorInvalidParameter);
  if (ids->empty()) return finish(kErrorQueueEmpty);
  if (last != nullptr) *last = ids->back();
  ids->pop_back();
  return kSuccess;
}
