// Other users' calls into CUPTI, torch.profiler's above all: we get out of the way
// first, then the call goes through, once, with its result.
//
// PyTorch's libraries link libcupti dynamically, so these definitions come before the
// real ones; who looks functions up by dlsym is sent here by hooks/dlsym.cc. Our own
// calls go to the library directly (library.h) and never pass here.
//
// One argument is not passed on as it came: where the other user shares our libcupti,
// its buffer callbacks are called through ours, so that a buffer that was lent by one
// of us never returns to the other.
//
// A subscriber of callbacks and the activity API do not disturb each other: it must not
// come while CUPTI is taken down (takedown.h), and that is all. Subscribers of the V2
// API do; they come by cuptiSubscribe_v2.
#include "preload/cupti/tracer.h"
#include "preload/hooks/record.h"
#include "preload/hooks/wrapper_table.h"
#include "preload/support/libdl.h"
#include "preload/support/own_code.h"

namespace lull::cupti {
namespace {

using OtherCall = Tracer::OtherCall;
using lull::Original;

// What the caller is linked to. Several copies of libcupti may be mapped.
void* find_in_scope_of(const void* caller, const char* name, libdl::Dlsym dlsym) {
  const link_map* object = libdl::object_of(caller);
  if (object == nullptr || object->l_name == nullptr || *object->l_name == '\0') {
    return nullptr;
  }
  void* handle = libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD);
  if (handle == nullptr) return nullptr;
  void* found = dlsym(handle, name);
  libdl::close(handle);
  return found != nullptr && !is_our_code(found) ? found : nullptr;
}

// The function that the caller would have reached without us. Looked up each time:
// these calls are few.
template <typename Function>
Function* original_for(const char* name, const void* caller, Original& remembered) {
  ErrnoKeeper keep_errno;
  libdl::Dlsym dlsym = libdl::real_dlsym();
  if (dlsym == nullptr) return nullptr;
  void* found = find_in_scope_of(caller, name, dlsym);
  if (found == nullptr) found = remembered.load(std::memory_order_acquire);
  if (found == nullptr) found = libdl::beyond_us(name, nullptr);
  if (found == nullptr) libdl::error();
  return reinterpret_cast<Function*>(found);
}

// A process that will never record is left alone.
bool inert() { return g_state->mode.load(std::memory_order_acquire) == Mode::kInert; }

void before(OtherCall call, Kind kind = {}) {
  ErrnoKeeper keep_errno;
  if (!inert()) g_tracer->before_other(call, kind);
}

}  // namespace

#define LULL_CUPTI_EXPORT extern "C" __attribute__((visibility("protected")))

// Puts the function into the table of hooks/dlsym.cc, and names its `original`.
#define LULL_CUPTI_ENTRY(name, parameters)  \
  LULL_CUPTI_EXPORT Result name parameters; \
  namespace {                               \
  Original g_##name;                        \
  }                                         \
  LULL_TABLE_ENTRY(name, name, kCupti, g_##name)
#define LULL_FIND_ORIGINAL(name)                                                  \
  auto* original =                                                                \
      original_for<decltype(name)>(#name, __builtin_return_address(0), g_##name); \
  if (original == nullptr) return kNotInitialized;                                \
  OwnCall own(__builtin_frame_address(0))

LULL_CUPTI_ENTRY(cuptiActivityRegisterCallbacks, (BufferRequested, BufferCompleted))
LULL_CUPTI_EXPORT Result cuptiActivityRegisterCallbacks(BufferRequested requested,
                                                        BufferCompleted completed) {
  LULL_FIND_ORIGINAL(cuptiActivityRegisterCallbacks);
  before(OtherCall::kPrepare);
  if (!inert() && g_tracer->delegate(original, requested, completed)) {
    return original(on_buffer_requested, on_buffer_completed);
  }
  return original(requested, completed);
}

LULL_CUPTI_ENTRY(cuptiActivityRegisterTimestampCallback, (TimestampCallback))
LULL_CUPTI_EXPORT Result
cuptiActivityRegisterTimestampCallback(TimestampCallback callback) {
  LULL_FIND_ORIGINAL(cuptiActivityRegisterTimestampCallback);
  before(OtherCall::kPrepare);
  return original(callback);
}

LULL_CUPTI_ENTRY(cuptiActivityEnable, (Kind))
LULL_CUPTI_EXPORT Result cuptiActivityEnable(Kind kind) {
  LULL_FIND_ORIGINAL(cuptiActivityEnable);
  before(OtherCall::kEnable, kind);
  return original(kind);
}

LULL_CUPTI_ENTRY(cuptiActivityEnableAndDump, (Kind))
LULL_CUPTI_EXPORT Result cuptiActivityEnableAndDump(Kind kind) {
  LULL_FIND_ORIGINAL(cuptiActivityEnableAndDump);
  before(OtherCall::kEnable, kind);
  return original(kind);
}

LULL_CUPTI_ENTRY(cuptiActivityEnableContext, (void*, Kind))
LULL_CUPTI_EXPORT Result cuptiActivityEnableContext(void* context, Kind kind) {
  LULL_FIND_ORIGINAL(cuptiActivityEnableContext);
  before(OtherCall::kEnable, kind);
  return original(context, kind);
}

// A disable by the other would take away kinds of ours: none may be on then.
LULL_CUPTI_ENTRY(cuptiActivityDisable, (Kind))
LULL_CUPTI_EXPORT Result cuptiActivityDisable(Kind kind) {
  LULL_FIND_ORIGINAL(cuptiActivityDisable);
  before(OtherCall::kDisable, kind);
  return original(kind);
}

LULL_CUPTI_ENTRY(cuptiActivityDisableContext, (void*, Kind))
LULL_CUPTI_EXPORT Result cuptiActivityDisableContext(void* context, Kind kind) {
  LULL_FIND_ORIGINAL(cuptiActivityDisableContext);
  before(OtherCall::kDisable, kind);
  return original(context, kind);
}

LULL_CUPTI_ENTRY(cuptiActivityFlushAll, (uint32_t))
LULL_CUPTI_EXPORT Result cuptiActivityFlushAll(uint32_t flag) {
  LULL_FIND_ORIGINAL(cuptiActivityFlushAll);
  Result result = original(flag);
  ErrnoKeeper keep_errno;
  if (!inert()) g_tracer->after_flush(flag);
  return result;
}

LULL_CUPTI_ENTRY(cuptiFinalize, ())
LULL_CUPTI_EXPORT Result cuptiFinalize() {
  LULL_FIND_ORIGINAL(cuptiFinalize);
  before(OtherCall::kFinalize);
  return original();
}

LULL_CUPTI_ENTRY(cuptiSubscribe, (void**, void*, void*))
LULL_CUPTI_EXPORT Result cuptiSubscribe(void** subscriber, void* callback,
                                        void* user_data) {
  LULL_FIND_ORIGINAL(cuptiSubscribe);
  before(OtherCall::kSubscribe);
  return original(subscriber, callback, user_data);
}

LULL_CUPTI_ENTRY(cuptiSubscribe_v2, (void**, void*, void*, void*))
LULL_CUPTI_EXPORT Result cuptiSubscribe_v2(void** subscriber, void* callback,
                                           void* user_data, void* parameters) {
  LULL_FIND_ORIGINAL(cuptiSubscribe_v2);
  before(OtherCall::kPrepare);
  Result result = original(subscriber, callback, user_data, parameters);
  ErrnoKeeper keep_errno;
  if (result == kSuccess && subscriber != nullptr && !inert()) {
    g_tracer->after_subscribe(*subscriber);
  }
  return result;
}

LULL_CUPTI_ENTRY(cuptiUnsubscribe, (void*))
LULL_CUPTI_EXPORT Result cuptiUnsubscribe(void* subscriber) {
  LULL_FIND_ORIGINAL(cuptiUnsubscribe);
  Result result = original(subscriber);
  ErrnoKeeper keep_errno;
  if (!inert()) g_tracer->after_unsubscribe(subscriber);
  return result;
}

}  // namespace lull::cupti
