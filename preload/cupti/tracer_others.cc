// The tracer among other users of CUPTI: out of their way, and back.
#include "preload/cupti/tracer.h"
#include "preload/cupti/tracer_lock.h"
#include "preload/support/clock.h"

namespace lull::cupti {
namespace {

// Another user waits this long for a thread of ours that is in CUPTI, then goes ahead:
// that thread might be waiting for the user.
constexpr uint64_t kLongestWaitNs = 2'000'000'000;

}  // namespace

// Leaves CUPTI to somebody else. Their callbacks get the buffers from here on.
void Tracer::yield(abi::TracingReason reason) {
  if (phase_ == Phase::kDead || phase_ == Phase::kYielded) return;
  uint64_t now = monotonic_ns();
  if (left_over_) end_left_over(now);
  if (phase_ == Phase::kOn) {
    switch_off();
    rest_.due_ns = now;
  }
  if (rest_.due_ns != 0) collect_rest(true);
  bool foreign_clock = reason == abi::TracingReason::kForeignClock;
  bool same_library = forwarding_.registered_by() == api_.register_callbacks;
  forwarding_.turn(same_library && !foreign_clock);
  phase_ = Phase::kYielded;
  yield_reason_ = reason;
  set_state(abi::CuptiState::kYielded);
  tell(abi::TracingState::kYielded, reason, now);
}

void Tracer::before_other(OtherCall call, Kind kind) {
  takedown_.met_another_user();
  Lock lock(this, kLongestWaitNs);
  if (!lock.held()) return;
  uint64_t now = monotonic_ns();
  switch (call) {
    case OtherCall::kPrepare:
      others_.prepared(now);
      break;
    case OtherCall::kEnable:
      others_.enabled(kind, now);
      break;
    case OtherCall::kDisable:
      others_.disabled(kind, now);
      break;
    case OtherCall::kFinalize:
      others_.finalized(now);
      break;
    case OtherCall::kSubscribe:
      return;  // it is not in the way of tracing
  }
  make_way();
}

// A user whom we never meet because we trace nothing yet is met by follow().
void Tracer::make_way() {
  if (!is_ours() || !loaded_.load(std::memory_order_relaxed)) return;
  SelfTime self(segment_);
  yield(abi::TracingReason::kOtherUser);
  send_outbox();
}

void Tracer::after_flush(uint32_t flag) {
  Lock lock(this, kLongestWaitNs);
  if (lock.held()) others_.flushed(flag, monotonic_ns());
}

void Tracer::after_subscribe(const void* handle) {
  Lock lock(this, kLongestWaitNs);
  if (lock.held()) others_.subscribed(handle, monotonic_ns());
}

void Tracer::after_unsubscribe(const void* handle) {
  Lock lock(this, kLongestWaitNs);
  if (lock.held()) others_.unsubscribed(handle, monotonic_ns());
}

bool Tracer::delegate(RegisterCallbacks original, BufferRequested requested,
                      BufferCompleted completed) {
  takedown_.met_another_user();
  forwarding_.remember(original, requested, completed);
  bool shared = is_ours() && loaded_.load(std::memory_order_acquire) &&
                api_.register_callbacks == original;
  if (shared) forwarding_.turn(true);
  return shared;
}

}  // namespace lull::cupti
