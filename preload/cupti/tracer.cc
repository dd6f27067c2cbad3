#include "preload/cupti/tracer.h"

#include <stdlib.h>

#include "preload/cupti/devices.h"
#include "preload/cupti/gpu.h"
#include "preload/cupti/schedule.h"
#include "preload/cupti/tracer_lock.h"
#include "preload/hooks/guard.h"
#include "preload/python/python.h"
#include "preload/support/clock.h"
#include "preload/support/libdl.h"
#include "preload/support/raw_syscall.h"

namespace lull {

constinit std::atomic<uint64_t> g_gpu_deadline{UINT64_MAX};
constinit std::atomic<uint32_t> g_gpu_wants_sync{0};
constinit std::atomic<uint32_t> g_gpu_restless{0};

// What CUPTI itself calls is no call of the program's.
void gpu_poll(char* segment) {
  OwnCall own(__builtin_frame_address(0));
  cupti::g_tracer->poll(segment);
}
void gpu_settle() {
  OwnCall own(__builtin_frame_address(0));
  cupti::g_tracer->settle();
}
void gpu_prepare(char* segment) { cupti::g_tracer->prepare(segment); }
void gpu_step_boundary(char* segment) {
  OwnCall own(__builtin_frame_address(0));
  cupti::g_tracer->step_boundary(segment);
}
void gpu_synchronized(char* segment, bool whole_device, uint64_t since_ns) {
  OwnCall own(__builtin_frame_address(0));
  bool all = whole_device && cupti::one_device_is_used();
  cupti::g_tracer->synchronized(segment, all, since_ns);
}

}  // namespace lull

namespace lull::cupti {
namespace {

constexpr uint64_t kMillisecond = 1'000'000;
// How often a hook looks after CUPTI: while tracing or with buffers waiting, and else.
constexpr uint64_t kBusyPeriodNs = 20 * kMillisecond;
constexpr uint64_t kIdlePeriodNs = 50 * kMillisecond;
// Right after a start, until the driver can be asked for its devices.
constexpr uint64_t kFirstPeriodNs = kMillisecond;
constexpr uint64_t kSyncFlushPeriodNs = 200 * kMillisecond;
constexpr uint64_t kRetryNs = 10'000 * kMillisecond;
constexpr uint64_t kStepWaitNs = 5 * kMillisecond;

void at_program_exit() { g_tracer->at_exit(); }

Tracer g_the_tracer;

}  // namespace

Tracer* g_tracer = &g_the_tracer;

bool Tracer::is_ours() const {
  uint32_t generation = generation_.load(std::memory_order_acquire);
  return generation != 0 &&
         generation == g_state->generation.load(std::memory_order_relaxed);
}

void Tracer::set_state(abi::CuptiState state) {
  state_ = state;
  header().cupti_state.store(static_cast<uint32_t>(state), std::memory_order_relaxed);
}

void Tracer::prepare(char* segment) {
  pid_t process = raw_getpid();
  bool inherited = loaded_.load(std::memory_order_relaxed) && loaded_by_ != process;
  // In a fork child it may be taken by a thread that is not there.
  if (prepared_by_ != process) busy_.store(0, std::memory_order_relaxed);
  prepared_by_ = process;
  Lock lock(this, 0);
  if (!lock.held()) {
    // A thread that began in an attachment before this one is still at work. It may be
    // the one that we run on: there will be no GPU truth this time.
    generation_.store(0, std::memory_order_release);
    abi::SegmentView(segment).header().cupti_state.store(
        static_cast<uint32_t>(abi::CuptiState::kFailed), std::memory_order_relaxed);
    g_gpu_deadline.store(UINT64_MAX, std::memory_order_relaxed);
    return;
  }
  begin_anew(segment);
  if (inherited) phase_ = Phase::kDead;
  if (!inherited) describe();
  generation_.store(g_state->generation.load(std::memory_order_relaxed),
                    std::memory_order_release);
  g_gpu_wants_sync.store(0, std::memory_order_relaxed);
  g_gpu_restless.store(0, std::memory_order_relaxed);
  // Not by the mode: that may change with each arming.
  g_gpu_deadline.store(inherited ? UINT64_MAX : 0, std::memory_order_relaxed);
}

// Nothing that was told of an earlier segment, and nothing that came from it, holds for
// this one. What CUPTI is at, its buffers and the clock are the process's.
void Tracer::begin_anew(char* segment) {
  segment_ = segment;
  begun_ns_.store(monotonic_ns(), std::memory_order_relaxed);
  if (phase_ == Phase::kOn) left_over_ = true;
  if (phase_ == Phase::kYielded) phase_ = Phase::kOff;
  told_ = abi::TracingState::kOff;
  told_ns_ = 0;
  slept_ = false;
  rest_.lost = true;  // what is still running was of an earlier one
  window_ = windows_begun_ = first_window_ = refused_window_ = 0;
  devices_ = 0;
  others_ = OtherUsers();
  uses_gpu_ = false;
  outbox_.forget();
  losses_.forget();
  while (Buffer* buffer = pool_.take_waiting()) pool_.release(buffer);
  boundaries_.store(0, std::memory_order_relaxed);
  steps_ = waiting_.steps_held = 0;
  waiting_.behind.store(false, std::memory_order_relaxed);
  arming_ = abi::SegmentView(segment).control().arming.load(std::memory_order_acquire);
}

// Into a new header, where CUPTI is known already.
void Tracer::describe() {
  bool loaded = loaded_.load(std::memory_order_relaxed);
  if (!loaded && phase_ != Phase::kDead) return;
  header().cupti_version.store(api_.version, std::memory_order_relaxed);
  set_state(phase_ == Phase::kDead ? state_
            : left_over_           ? abi::CuptiState::kTracing
                                   : abi::CuptiState::kReady);
}

void Tracer::follow(const Wanted& wanted, uint64_t now) {
  bool refused = now < try_again_ns_ || wanted.window + 1 == refused_window_;
  bool foreign_clock = yield_reason_ == abi::TracingReason::kForeignClock;
  if (phase_ == Phase::kYielded && !others_.active(now) &&
      !(foreign_clock && refused)) {
    phase_ = Phase::kOff;
    if (loaded_.load(std::memory_order_relaxed)) set_state(abi::CuptiState::kReady);
    tell(abi::TracingState::kOff, yield_reason_, now);
  }
  if (phase_ == Phase::kOff && is_on(wanted.state) && !refused) {
    if (others_.active(now)) {
      yield(abi::TracingReason::kOtherUser);
    } else {
      start(wanted, now);
    }
  } else if (phase_ == Phase::kOn && !is_on(wanted.state)) {
    stop(wanted.reason);
  } else if (phase_ == Phase::kOn &&
             (wanted.state != told_ || wanted.window != window_)) {
    window_ = wanted.window;
    bool begins = wanted.state == abi::TracingState::kActive && wanted.state != told_;
    if (begins) return begin_active(now);
    waiting_.behind.store(false, std::memory_order_relaxed);
    tell(wanted.state, wanted.reason, now);
  }
}

void Tracer::look_after(uint64_t now, bool at_boundary) {
  at_boundary_ = at_boundary;
  if (left_over_) end_left_over(now);
  deliver_waiting(Patience::kNone);
  if (phase_ == Phase::kOn) {
    clock_.take(api_, false);
    if (losses_.take_unreadable() != 0 && clock_.is_foreign()) {
      refused_window_ = window_ + 1;
      try_again_ns_ = now + kRetryNs;
      yield(abi::TracingReason::kForeignClock);
    }
  }
  take_steps(now);
  take_arming();
  follow(prolonged(decide(), now), now);
  if (rest_.due_ns != 0 && now >= rest_.due_ns) collect_rest(false);
  if (phase_ == Phase::kOn) {
    describe_devices_once(now);
    if (now > last_flush_ns_ + kFlushPeriodNs) flush(kFlushCompleted, kFlushPeriodNs);
  }
  send_outbox();
  schedule_next(now);
}

// Nothing is traced, and nothing of CUPTI's is still to come.
bool Tracer::is_quiet() const {
  return phase_ == Phase::kOff && !left_over_ && rest_.due_ns == 0 &&
         loaded_.load(std::memory_order_relaxed) && pool_.all_back() &&
         pool_.all_decoded();
}

void Tracer::schedule_next(uint64_t now) {
  bool busy = phase_ == Phase::kOn || rest_.due_ns != 0 || !outbox_.empty() ||
              !pool_.all_decoded() || losses_.pending();
  uint64_t period = busy ? kBusyPeriodNs : kIdlePeriodNs;
  if (phase_ == Phase::kOn && devices_ == 0) period = kFirstPeriodNs;
  bool never = phase_ == Phase::kDead && !busy;
  g_gpu_deadline.store(never ? UINT64_MAX : now + period, std::memory_order_relaxed);
  takedown_.plan(is_quiet(), api_, abi::SegmentView(segment_).control());
  bool wants_sync = phase_ == Phase::kOn || rest_.due_ns != 0 || takedown_.due();
  g_gpu_wants_sync.store(wants_sync, std::memory_order_relaxed);
  g_gpu_restless.store(busy && phase_ != Phase::kDead, std::memory_order_relaxed);
}

void Tracer::describe_devices_once(uint64_t now) {
  if (devices_ != 0) return;
  abi::Event events[kMostDevices];
  uint32_t count = describe_devices(segment_, now, events);
  if (count == 0) return;
  for (uint32_t i = 0; i < count; ++i) emit(events[i]);
  if (count == 1) contexts_.set_only(events[0].arg2);
  devices_ = count;
  // Now, and not before: the handlers of CUDA and CUPTI are registered, and run after
  // ours.
  if (!exit_registered_) exit_registered_ = atexit(at_program_exit) == 0;
}

// --- hooks
// -----------------------------------------------------------------------------

void Tracer::poll(char* segment) {
  if (!is_ours()) {
    g_gpu_deadline.store(UINT64_MAX, std::memory_order_relaxed);
    return;
  }
  if (busy_.load(std::memory_order_relaxed) != 0) return;
  Lock lock(this, 0);
  if (!lock.held()) return;
  SelfTime self(segment);
  uses_gpu_ = true;  // this is a CUDA call
  look_after(monotonic_ns(), false);
}

void Tracer::settle() {
  uint64_t now = monotonic_ns();
  if (!is_ours()) {
    g_gpu_restless.store(0, std::memory_order_relaxed);
  } else if (gpu_is_due(now)) {
    poll(segment_);
  }
}

void Tracer::step_boundary(char* segment) {
  if (!is_ours()) return;
  boundaries_.fetch_add(1, std::memory_order_relaxed);
  Lock lock(this, kStepWaitNs);
  if (lock.held()) {
    SelfTime self(segment);
    // Calls through pointers that were taken before we came are not seen.
    if (abi::SegmentView(segment_).gpu_calls() != 0 || libdl::loaded_late()) {
      uses_gpu_ = true;
    }
    look_after(monotonic_ns(), true);
  } else {
    g_gpu_deadline.store(0, std::memory_order_relaxed);  // whoever comes next counts it
  }
}

void Tracer::synchronized(char* segment, bool all, uint64_t since_ns) {
  if (!is_ours() || busy_.load(std::memory_order_relaxed) != 0) return;
  bool rest = rest_.due_ns != 0 && all;
  bool due =
      phase_ == Phase::kOn && monotonic_ns() > last_flush_ns_ + kSyncFlushPeriodNs;
  bool down = takedown_.due() && all && !python_holds_gil();
  if (!rest && !due && !is_behind() && !down) return;
  Lock lock(this, 0);
  if (!lock.held()) return;
  SelfTime self(segment);
  catch_up(monotonic_ns(), true);
  // Another thread may have launched while this one waited.
  rest = rest && rest_.due_ns != 0 && since_ns >= rest_.stopped_ns;
  due = due && phase_ == Phase::kOn;
  if (rest) {
    backlog_.all_ended();
    collect_rest(true);
  }
  if (due) flush(kFlushCompleted, kFlushPeriodNs);
  if (down && takedown_.due() && is_quiet()) take_down();
  send_outbox();
}

void Tracer::at_exit() {
  Guard guard(__builtin_frame_address(0), Layer::kLibrary);
  if (!guard.outermost() || !is_ours()) return;
  Lock lock(this, kStepWaitNs);
  if (!lock.held() || !loaded_.load(std::memory_order_relaxed)) return;
  SelfTime self(segment_);
  if (left_over_) end_left_over(monotonic_ns());
  exiting_.store(true, std::memory_order_relaxed);
  endurance_.begin_exit(monotonic_ns());
  bool alive = driver_is_alive();
  if (phase_ == Phase::kOn && alive) {
    uint64_t now = monotonic_ns();
    catch_up(now, true);
    switch_off();
    bool asleep = decide().reason == abi::TracingReason::kDisarmed;
    tell(abi::TracingState::kOff,
         asleep ? abi::TracingReason::kDisarmed : abi::TracingReason::kProcessEnd,
         end_of_tracing(now));
    rest_.due_ns = now;
  }
  if ((rest_.due_ns != 0 || backlog_.has_unended()) && alive) collect_rest(true);
  deliver_waiting(Patience::kAtExit);
  lose_waiting();
  lose_unended();
  send_outbox();
  phase_ = Phase::kDead;
  g_gpu_wants_sync.store(0, std::memory_order_relaxed);
  g_gpu_restless.store(0, std::memory_order_relaxed);
  g_gpu_deadline.store(UINT64_MAX, std::memory_order_relaxed);
}

// --- telling the relay ---------------------------------------------------------------

void Tracer::tell(abi::TracingState state, abi::TracingReason reason, uint64_t when) {
  told_ = state;
  // What was told last holds until then: an end that was decided elsewhere, at a time
  // before, does not undo a beginning.
  if (when <= told_ns_) when = told_ns_ + 1;
  told_ns_ = when;
  abi::Event event = {};
  event.type = abi::EventType::kGpuTracing;
  event.start_ns = when;
  event.arg0 = static_cast<uint64_t>(state);
  event.arg1 = static_cast<uint64_t>(reason);
  event.arg2 = window_;
  emit(event);
}

void Tracer::emit(const abi::Event& event) {
  send_outbox();
  if (!outbox_.add(event)) {
    header().gpu_records_lost.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  send_outbox();
}

void Tracer::send_outbox() { outbox_.send(segment_, &losses_, pool_); }

}  // namespace lull::cupti
