#include "tests/sim/driver/api.h"
#include "tests/sim/engine/clock.h"

using namespace lull::sim;

namespace {

constexpr unsigned kDisableTiming = 2;  // CU_EVENT_DISABLE_TIMING

// What the event was recorded as; null for an event never recorded.
int recorded(Engine* engine, void* handle, OpPtr* op, SyncEvent* sync = nullptr) {
  Lock lock(engine->mutex());
  auto event = engine->events.find(handle);
  if (event == nullptr) return kInvalidHandle;
  if (sync != nullptr) {
    sync->event = event->id;
    sync->stream = event->recorded != nullptr ? event->recorded->stream : 0;
    sync->event_record = event->recorded != nullptr ? event->recorded->correlation : 0;
  }
  if (int error = engine->check_capture()) return error;
  if (event->capture != nullptr) return kCapturedEvent;
  *op = event->recorded;
  return kOk;
}

int record(Engine* engine, void* event, void* stream, DefaultStream null) {
  Lock lock(engine->mutex());
  auto what = engine->events.find(event);
  auto where = engine->stream(stream, null);
  if (what == nullptr || where == nullptr) return kInvalidHandle;
  return engine->record_event(what, where);
}

int elapsed(Engine* engine, float* milliseconds, void* start, void* end) {
  if (milliseconds == nullptr) return kInvalidValue;
  OpPtr first, last;
  if (int error = recorded(engine, start, &first)) return error;
  if (int error = recorded(engine, end, &last)) return error;
  {
    Lock lock(engine->mutex());
    auto a = engine->events.find(start);
    auto b = engine->events.find(end);
    if (!a || !b || !a->timing || !b->timing) return kInvalidHandle;
  }
  if (first == nullptr || last == nullptr) return kInvalidHandle;
  int64_t now = now_ns();
  if (!first->done(now) || !last->done(now)) return kNotReady;
  *milliseconds =
      static_cast<float>(last->end_ns.load() - first->end_ns.load()) * 1e-6f;
  return kOk;
}

}  // namespace

SIM_EXPORT int cuEventCreate(void** event, unsigned flags) {
  SIM_CALL();
  if (event == nullptr) return call.done(kInvalidValue);
  if (this_thread().context() == nullptr) return call.done(kInvalidContext);
  Lock lock(engine->mutex());
  auto made = std::make_shared<Event>();
  made->id = engine->new_id();
  made->timing = (flags & kDisableTiming) == 0;
  *event = engine->events.add(std::move(made));
  return call.done(kOk);
}

SIM_EXPORT int cuEventDestroy_v2(void* event) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(engine->events.remove(event) ? kOk : kInvalidHandle);
}

SIM_STREAM_API(cuEventRecord, _ptsz, (void* event, void* stream),
               return call.done(record(engine, event, stream, kNull));)

SIM_STREAM_API(cuEventRecordWithFlags, _ptsz, (void* event, void* stream, unsigned),
               return call.done(record(engine, event, stream, kNull));)

SIM_EXPORT int cuEventQuery(void* event) {
  SIM_CALL();
  SyncScope sync(SyncKind::kEvent, /*query=*/true);
  OpPtr op;
  int error = recorded(engine, event, &op, &sync.event);
  if (error == kOk && op != nullptr && !op->done(now_ns())) error = kNotReady;
  return call.done(sync.done(error));
}

SIM_EXPORT int cuEventSynchronize(void* event) {
  SIM_CALL();
  SyncScope sync(SyncKind::kEvent);
  OpPtr op;
  int error = recorded(engine, event, &op, &sync.event);
  if (error == kOk) engine->wait({&op, 1});
  return call.done(sync.done(error));
}

SIM_EXPORT int cuEventElapsedTime(float* milliseconds, void* start, void* end) {
  SIM_CALL();
  return call.done(elapsed(engine, milliseconds, start, end));
}

SIM_EXPORT int cuEventElapsedTime_v2(float* milliseconds, void* start, void* end) {
  SIM_CALL();
  return call.done(elapsed(engine, milliseconds, start, end));
}
