#include <algorithm>

#include "tests/sim/driver/api.h"

using namespace lull::sim;

namespace {

int synchronize(Engine* engine, Context* context) {
  if (context == nullptr) return kInvalidContext;
  SyncScope sync(SyncKind::kContext);
  sync.event.context = context->id;
  std::vector<OpPtr> ops;
  {
    Lock lock(engine->mutex());
    if (int error = engine->check_capture()) return sync.done(error);
    ops = engine->unfinished(*context);
  }
  engine->wait(ops);
  return sync.done(kOk);
}

int create_context(Engine* engine, void** out, unsigned flags, int device) {
  if (out == nullptr) return kInvalidValue;
  if (!valid(engine, device)) return kInvalidDevice;
  Lock lock(engine->mutex());
  Context* context = engine->create_context(static_cast<uint32_t>(device), flags);
  this_thread().contexts.push_back(context);
  *out = context;
  return kOk;
}

}  // namespace

SIM_EXPORT int cuDevicePrimaryCtxRetain(void** context, int device) {
  SIM_CALL();
  if (context == nullptr) return call.done(kInvalidValue);
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  Lock lock(engine->mutex());
  *context = engine->primary_context(static_cast<uint32_t>(device));
  return call.done(kOk);
}

// The primary context lives as long as the process: releasing the last reference
// and reset wait for its work, and keep it.
SIM_EXPORT int cuDevicePrimaryCtxRelease_v2(int device) {
  SIM_CALL();
  return call.done(valid(engine, device) ? kOk : kInvalidDevice);
}

SIM_EXPORT int cuDevicePrimaryCtxReset_v2(int device) {
  SIM_CALL();
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  Context* context;
  {
    Lock lock(engine->mutex());
    context = engine->primary_context(static_cast<uint32_t>(device));
  }
  return call.done(synchronize(engine, context));
}

SIM_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  SIM_CALL();
  if (!valid(engine, device)) return call.done(kInvalidDevice);
  Lock lock(engine->mutex());
  *flags = 0;
  *active = engine->has_primary_context(static_cast<uint32_t>(device));
  return call.done(kOk);
}

SIM_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned) {
  SIM_CALL();
  return call.done(valid(engine, device) ? kOk : kInvalidDevice);
}

SIM_EXPORT int cuCtxCreate_v2(void** context, unsigned flags, int device) {
  SIM_CALL();
  return call.done(create_context(engine, context, flags, device));
}

SIM_EXPORT int cuCtxCreate_v4(void** context, void*, unsigned flags, int device) {
  SIM_CALL();
  return call.done(create_context(engine, context, flags, device));
}

SIM_EXPORT int cuCtxDestroy_v2(void* context) {
  SIM_CALL();
  auto kept = [&] {
    Lock lock(engine->mutex());
    return engine->contexts.find(context);
  }();
  if (kept == nullptr || kept->primary) return call.done(kInvalidContext);
  int result = synchronize(engine, kept.get());
  Lock lock(engine->mutex());
  std::erase(this_thread().contexts, kept.get());
  engine->contexts.remove(context);
  engine->destroyed.push_back(std::move(kept));
  return call.done(result);
}

SIM_EXPORT int cuCtxGetCurrent(void** context) {
  SIM_CALL();
  if (context == nullptr) return call.done(kInvalidValue);
  *context = this_thread().context();
  return call.done(kOk);
}

SIM_EXPORT int cuCtxSetCurrent(void* context) {
  SIM_CALL();
  auto& stack = this_thread().contexts;
  if (context == nullptr) {
    if (!stack.empty()) stack.pop_back();
    return call.done(kOk);
  }
  Lock lock(engine->mutex());
  if (engine->contexts.find(context) == nullptr) return call.done(kInvalidContext);
  if (stack.empty()) stack.push_back(nullptr);
  stack.back() = static_cast<Context*>(context);
  return call.done(kOk);
}

SIM_EXPORT int cuCtxPushCurrent_v2(void* context) {
  SIM_CALL();
  Lock lock(engine->mutex());
  if (engine->contexts.find(context) == nullptr) return call.done(kInvalidContext);
  this_thread().contexts.push_back(static_cast<Context*>(context));
  return call.done(kOk);
}

SIM_EXPORT int cuCtxPopCurrent_v2(void** context) {
  SIM_CALL();
  auto& stack = this_thread().contexts;
  if (stack.empty()) return call.done(kInvalidContext);
  if (context != nullptr) *context = stack.back();
  stack.pop_back();
  return call.done(kOk);
}

SIM_EXPORT int cuCtxGetDevice(int* device) {
  SIM_CALL();
  Context* context = this_thread().context();
  if (device == nullptr) return call.done(kInvalidValue);
  if (context == nullptr) return call.done(kInvalidContext);
  *device = static_cast<int>(context->device);
  return call.done(kOk);
}

SIM_EXPORT int cuCtxGetId(void* context, unsigned long long* id) {
  SIM_CALL();
  if (context == nullptr) context = this_thread().context();
  Lock lock(engine->mutex());
  auto found = engine->contexts.find(context);
  if (found == nullptr) return call.done(kInvalidContext);
  *id = found->id;
  return call.done(kOk);
}

SIM_EXPORT int cuCtxGetFlags(unsigned* flags) {
  SIM_CALL();
  Context* context = this_thread().context();
  if (context == nullptr) return call.done(kInvalidContext);
  *flags = context->flags;
  return call.done(kOk);
}

SIM_EXPORT int cuCtxGetApiVersion(void*, unsigned* version) {
  SIM_CALL();
  *version = 3020;
  return call.done(kOk);
}

SIM_EXPORT int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  SIM_CALL();
  if (least != nullptr) *least = 0;
  if (greatest != nullptr) *greatest = -5;
  return call.done(kOk);
}

// Limits are accepted and have no effect.
SIM_EXPORT int cuCtxSetLimit(int, size_t) {
  SIM_CALL();
  return call.done(kOk);
}

SIM_EXPORT int cuCtxEnablePeerAccess(void* peer, unsigned) {
  SIM_CALL();
  Lock lock(engine->mutex());
  return call.done(engine->contexts.find(peer) ? kOk : kInvalidContext);
}

SIM_EXPORT int cuCtxSynchronize(void) {
  SIM_CALL();
  return call.done(synchronize(engine, this_thread().context()));
}

SIM_EXPORT int cuCtxSynchronize_v2(void* context) {
  SIM_CALL();
  std::shared_ptr<Context> named;
  {
    Lock lock(engine->mutex());
    named = engine->contexts.find(context);
  }
  Context* meant = context == nullptr ? this_thread().context() : named.get();
  return call.done(synchronize(engine, meant));
}
