#include "tests/sim/driver/api.h"
#include "tests/sim/engine/clock.h"

using namespace lull::sim;

namespace {

constexpr unsigned kNonBlocking = 1;  // CU_STREAM_NON_BLOCKING

int create(Engine* engine, void** out, unsigned flags, int priority) {
  Context* context = this_thread().context();
  if (out == nullptr || flags > kNonBlocking) return kInvalidValue;
  if (context == nullptr) return kInvalidContext;
  Lock lock(engine->mutex());
  *out = engine->streams.add(
      engine->create_stream(context, flags != kNonBlocking, priority));
  return kOk;
}

// The stream's unfinished work; an error if the stream cannot be asked about it.
int unfinished(Engine* engine, void* handle, DefaultStream null,
               std::vector<OpPtr>* ops, SyncEvent* sync) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  sync->stream = stream->id;
  sync->context = stream->context->id;
  if (stream->capture != nullptr) {
    stream->capture->invalid = true;
    return kCaptureUnsupported;
  }
  if (int error = engine->check_capture()) return error;
  *ops = engine->unfinished(*stream);
  return kOk;
}

void describe(const Event& event, SyncEvent* sync) {
  sync->event = event.id;
  if (event.recorded != nullptr) sync->event_record = event.recorded->correlation;
}

int synchronize(Engine* engine, void* handle, DefaultStream null) {
  SyncScope sync(SyncKind::kStream);
  std::vector<OpPtr> ops;
  int error = unfinished(engine, handle, null, &ops, &sync.event);
  if (error == kOk) engine->wait(ops);
  return sync.done(error);
}

int query(Engine* engine, void* handle, DefaultStream null) {
  SyncScope sync(SyncKind::kStream, /*query=*/true);
  std::vector<OpPtr> ops;
  int error = unfinished(engine, handle, null, &ops, &sync.event);
  if (error != kOk) return sync.done(error);
  int64_t now = now_ns();
  for (const OpPtr& op : ops) {
    if (!op->done(now)) return sync.done(kNotReady);
  }
  return sync.done(kOk);
}

// A stream's property, written by `read` under the lock.
template <typename Read>
int inspect(Engine* engine, void* handle, DefaultStream null, Read read) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  read(*stream);
  return kOk;
}

int launch_host(Engine* engine, void* handle, DefaultStream null,
                std::function<void()> function, void* identity) {
  Lock lock(engine->mutex());
  auto stream = engine->stream(handle, null);
  if (stream == nullptr) return kInvalidHandle;
  OpSpec spec;
  spec.kind = OpKind::kHostFunction;
  spec.handle = as_device(identity);
  spec.host_function = std::move(function);
  return engine->enqueue(stream, std::move(spec));
}

}  // namespace

SIM_EXPORT int cuStreamCreate(void** stream, unsigned flags) {
  SIM_CALL();
  return call.done(create(engine, stream, flags, 0));
}

SIM_EXPORT int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  SIM_CALL();
  return call.done(create(engine, stream, flags, priority));
}

// Returns at once; work under way goes on, as on the device.
SIM_EXPORT int cuStreamDestroy_v2(void* stream) {
  SIM_CALL();
  Lock lock(engine->mutex());
  auto found = engine->streams.find(stream);
  if (found == nullptr) return call.done(kInvalidHandle);
  engine->keep_until_done(found);
  engine->streams.remove(stream);
  return call.done(kOk);
}

SIM_STREAM_API(cuStreamSynchronize, _ptsz, (void* stream),
               return call.done(synchronize(engine, stream, kNull));)

SIM_STREAM_API(cuStreamQuery, _ptsz, (void* stream),
               return call.done(query(engine, stream, kNull));)

SIM_STREAM_API(cuStreamWaitEvent, _ptsz, (void* stream, void* event, unsigned), {
  SyncScope sync(SyncKind::kStreamWaitEvent);
  Lock lock(engine->mutex());
  auto waiter = engine->stream(stream, kNull);
  auto what = engine->events.find(event);
  if (waiter == nullptr || what == nullptr) return call.done(kInvalidHandle);
  describe(*what, &sync.event);
  sync.event.stream = waiter->id;
  sync.event.context = waiter->context->id;
  return call.done(sync.done(engine->wait_event(waiter, what)));
})

SIM_STREAM_API(cuLaunchHostFunc, _ptsz,
               (void* stream, void (*function)(void*), void* data), {
                 if (function == nullptr) return call.done(kInvalidValue);
                 return call.done(launch_host(
                     engine, stream, kNull, [=] { function(data); },
                     reinterpret_cast<void*>(function)));
               })

SIM_STREAM_API(cuStreamAddCallback, _ptsz,
               (void* stream, void (*function)(void*, int, void*), void* data,
                unsigned),
               {
                 if (function == nullptr) return call.done(kInvalidValue);
                 return call.done(launch_host(
                     engine, stream, kNull, [=] { function(stream, kOk, data); },
                     reinterpret_cast<void*>(function)));
               })

SIM_STREAM_API(cuStreamGetFlags, _ptsz, (void* stream, unsigned* flags), {
  return call.done(inspect(engine, stream, kNull, [&](const Stream& s) {
    *flags = s.blocking ? 0 : kNonBlocking;
  }));
})

SIM_STREAM_API(cuStreamGetPriority, _ptsz, (void* stream, int* priority), {
  return call.done(
      inspect(engine, stream, kNull, [&](const Stream& s) { *priority = s.priority; }));
})

SIM_STREAM_API(cuStreamGetId, _ptsz, (void* stream, unsigned long long* id), {
  return call.done(
      inspect(engine, stream, kNull, [&](const Stream& s) { *id = s.id; }));
})

SIM_STREAM_API(cuStreamGetCtx, _ptsz, (void* stream, void** context), {
  return call.done(
      inspect(engine, stream, kNull, [&](const Stream& s) { *context = s.context; }));
})

SIM_STREAM_API(cuStreamGetDevice, _ptsz, (void* stream, int* device), {
  return call.done(inspect(engine, stream, kNull, [&](const Stream& s) {
    *device = static_cast<int>(s.context->device);
  }));
})
