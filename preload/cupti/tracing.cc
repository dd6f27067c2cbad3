// The tracer's calls into CUPTI.
#include "preload/cupti/devices.h"
#include "preload/cupti/library.h"
#include "preload/cupti/tracer.h"
#include "preload/support/clock.h"
#include "preload/support/libdl.h"
#include "preload/support/raw_syscall.h"

namespace lull::cupti {
namespace {

// After a window: how often to ask for what was still running, less often where nothing
// came; how often for nothing; and when to take it half done.
constexpr uint64_t kRestPeriodNs = 200'000'000;
constexpr uint32_t kQuietFlushes = 2;
constexpr uint64_t kRestPatienceNs = 5'000'000'000;  // since something came
// After 10 s (kLastRecordsNs of the collector) a window is judged by what has come.
constexpr uint64_t kUnendedPatienceNs = 9'000'000'000;
constexpr uint64_t kLibraryRetryNs = 10'000'000'000;
constexpr uint32_t kFlushPeriodMs = 100;
constexpr uint64_t kCallsThatShow = 100;

// API calls first: without them CUPTI gives no correlation ids. Never GRAPH_TRACE: with
// it a program dies when it launches a graph that is older than the tracing
// (docs/decisions/no_graph_trace.md). So graphs are told by their nodes.
constexpr Kind kKinds[] = {Kind::kDriver,           Kind::kRuntime,
                           Kind::kMemcpy,           Kind::kMemset,
                           Kind::kConcurrentKernel, Kind::kSynchronization};
// Without it a window still tells when the device was busy, but without reasons for
// waits between streams.
constexpr bool is_optional(Kind kind) { return kind == Kind::kSynchronization; }

// Frequent calls that neither submit nor wait: queries of devices, contexts, errors,
// events, pointers, captures (cupti_runtime_cbid.h, cupti_driver_cbid.h). Enabling or
// disabling the whole kind, by anybody, undoes this.
constexpr uint32_t kQuietRuntime[] = {10,  11,  16,  17,  138, 151, 317,
                                      318, 324, 325, 409, 410, 461, 462};
constexpr uint32_t kQuietDriver[] = {16, 303, 304, 310, 323, 324, 392, 450, 686};

void quieten(const Api& api) {
  if (api.enable_runtime_api != nullptr) {
    for (uint32_t call : kQuietRuntime) api.enable_runtime_api(call, 0);
  }
  if (api.enable_driver_api != nullptr) {
    for (uint32_t call : kQuietDriver) api.enable_driver_api(call, 0);
  }
}

}  // namespace

Decoder Tracer::decoder() {
  return {segment_,
          &api_,
          &names_,
          &contexts_,
          thread_ids_.load(std::memory_order_relaxed),
          generation_.load(std::memory_order_acquire),
          begun_ns_.load(std::memory_order_relaxed),
          &backlog_};
}

bool Tracer::load(uint64_t now) {
  if (loaded_.load(std::memory_order_relaxed)) return true;
  if (!uses_gpu_) return false;
  Result result = kSuccess;
  Loader loader = loader_ != nullptr ? loader_ : load_library;
  abi::CuptiState state = loader(&api_, &result);
  if (state == abi::CuptiState::kReady && !pool_.create()) {
    state = abi::CuptiState::kFailed;
  }
  set_state(state);
  if (state == abi::CuptiState::kNoLibrary || state == abi::CuptiState::kUnused) {
    try_again_ns_ = now + kLibraryRetryNs;  // it may come with a later import
    return false;
  }
  header().cupti_version.store(api_.version, std::memory_order_relaxed);
  if (state == abi::CuptiState::kReady) {
    // Pairs with the acquires in callbacks: api_ and the pool are complete.
    loaded_by_ = raw_getpid();
    loaded_.store(true, std::memory_order_release);
    return true;
  }
  header().cupti_result.store(static_cast<uint32_t>(result), std::memory_order_relaxed);
  phase_ = Phase::kDead;
  tell(abi::TracingState::kOff, abi::TracingReason::kError, now);
  return false;
}

bool Tracer::enable_all(Result* result) {
  for (Kind kind : kKinds) {
    *result = api_.enable(kind);
    if (*result != kSuccess && !is_optional(kind)) return false;
  }
  *result = kSuccess;
  return true;
}

void Tracer::start(const Wanted& wanted, uint64_t now) {
  if (!load(now)) return;
  CaptureTolerated captures_stay_valid;
  if (!clock_.take(api_, true)) return fail(kNotInitialized);
  // Somebody else's clock is known by two samples. Records that came before the second
  // could not be read.
  if (!clock_.go_on()) {
    try_again_ns_ = now + kSamplePeriodNs;
    return;
  }
  forwarding_.turn(false);
  Result result = api_.register_callbacks(on_buffer_requested, on_buffer_completed);
  if (result != kSuccess) return fail(result);
  if (api_.set_thread_id_type != nullptr && api_.get_thread_id_type != nullptr &&
      api_.get_thread_id_type(&thread_id_type_) == kSuccess) {
    thread_ids_.store(api_.set_thread_id_type(kThreadIdSystem) == kSuccess,
                      std::memory_order_relaxed);
  }
  // The window before may have ended a moment ago.
  if (!rest_.lost && backlog_.has_unended()) flush(kFlushCompleted, 0);
  lose_unended();
  requests_at_start_ = pool_.lent_count();
  calls_at_start_ = abi::SegmentView(segment_).gpu_calls();
  if (!enable_all(&result)) {
    switch_off();
    return fail(result);
  }
  quieten(api_);
  takedown_.traced();
  phase_ = Phase::kOn;
  rest_.lost = false;
  rest_.due_ns = 0;
  started_ns_ = last_flush_ns_ = monotonic_ns();
  if (wanted.window >= windows_begun_) windows_begun_ = wanted.window + 1;
  window_ = wanted.window;
  // Calls through pointers that were taken before we came are not counted, nor is what
  // a sleeping process calls.
  bool nothing_before = calls_at_start_ == 0 && !slept_ && !libdl::loaded_late();
  backlog_.begin(started_ns_, nothing_before);
  bool behind = wanted.state == abi::TracingState::kActive && !nothing_before;
  waiting_.begin(started_ns_);
  waiting_.behind.store(behind, std::memory_order_relaxed);
  if (!behind) let_cupti_flush();
  waiting_.boundaries_to_go = at_boundary_ ? 1 : 2;
  set_state(abi::CuptiState::kTracing);
  tell(behind ? abi::TracingState::kWarmUp : wanted.state, wanted.reason, started_ns_);
}

// Not while active time waits for the device: what CUPTI returned by itself before it
// begins would not be of it.
void Tracer::let_cupti_flush() {
  if (api_.flush_period != nullptr) api_.flush_period(kFlushPeriodMs);
}

// Leaves CUPTI as it was, the library apart: whoever comes next finds its defaults.
void Tracer::switch_off() {
  CaptureTolerated captures_stay_valid;
  backlog_.stop(monotonic_ns());
  clock_.take(api_, true);
  for (size_t i = sizeof kKinds / sizeof kKinds[0]; i > 0; --i) {
    api_.disable(kKinds[i - 1]);
  }
  if (api_.flush_period != nullptr) api_.flush_period(0);
  if (thread_ids_.load(std::memory_order_relaxed)) {
    api_.set_thread_id_type(thread_id_type_);
  }
}

// Whoever had it switched on is gone, and never saw it switched off. What it has seen
// since is of no window.
void Tracer::end_left_over(uint64_t now) {
  left_over_ = false;
  if (phase_ != Phase::kOn) return;
  switch_off();
  phase_ = Phase::kOff;
  set_state(abi::CuptiState::kReady);
  begun_ns_.store(now, std::memory_order_relaxed);
  rest_.stopped_ns = rest_.moved_ns = now;
  rest_.due_ns = now + kRestPeriodNs;
}

// What was launched is still running; its records are collected later.
void Tracer::stop(abi::TracingReason reason) {
  uint64_t now = monotonic_ns();
  note_silence(now);
  catch_up(now, true);
  switch_off();
  waiting_.behind.store(false, std::memory_order_relaxed);
  phase_ = Phase::kOff;
  set_state(abi::CuptiState::kReady);
  tell(abi::TracingState::kOff, reason, end_of_tracing(now));
  flush(kFlushCompleted, kRestPeriodNs);
  rest_.quiet = 0;
  rest_.seen = backlog_.operations();
  rest_.stopped_ns = rest_.moved_ns = now;
  rest_.due_ns = now + kRestPeriodNs;
}

// The program has worked, and CUPTI has not asked for a single buffer: somebody took
// our callbacks' place, past interpose.cc.
void Tracer::note_silence(uint64_t now) {
  uint64_t calls = abi::SegmentView(segment_).gpu_calls() - calls_at_start_;
  if (calls < kCallsThatShow || pool_.lent_count() != requests_at_start_ ||
      pool_.oldest_lent() != UINT64_MAX) {
    return;
  }
  tell_lost(started_ns_, now);
}

// Nobody knows how many records of the window.
void Tracer::tell_lost(uint64_t since, uint64_t now) {
  abi::Event lost = {};
  lost.type = abi::EventType::kGpuLost;
  lost.start_ns = since;
  lost.duration_ns = now > since ? now - since : 0;
  emit(lost);
}

// Nothing is known of what the last window launched and has not ended: how much of the
// window it took. Its record may come too late.
void Tracer::lose_unended() {
  if (rest_.lost) return;
  uint64_t since = backlog_.unended_since(started_ns_);
  if (since == UINT64_MAX) return;
  rest_.lost = true;
  tell_lost(since, monotonic_ns());
}

void Tracer::fail(Result result) {
  header().cupti_result.store(static_cast<uint32_t>(result), std::memory_order_relaxed);
  set_state(abi::CuptiState::kFailed);
  phase_ = Phase::kDead;
  tell(abi::TracingState::kOff, abi::TracingReason::kError, monotonic_ns());
}

// A buffer that CUPTI keeps holds records of calls made after it was lent, and a
// returned one is complete: so whatever ended before both the flush and the oldest
// loan has been returned. `slack_ns` is taken off for what CUPTI may still be at.
void Tracer::flush(uint32_t flag, uint64_t slack_ns) {
  CaptureTolerated captures_stay_valid;
  uint64_t before = last_flush_ns_;
  uint64_t now = monotonic_ns();
  last_flush_ns_ = now;
  clock_.take(api_, false);
  Result result = api_.flush_all(flag);
  if (result != kSuccess) {
    header().cupti_result.store(static_cast<uint32_t>(result),
                                std::memory_order_relaxed);
    return;
  }
  size_t dropped = 0;
  if (api_.get_dropped(nullptr, 0, &dropped) == kSuccess && dropped > 0) {
    header().cupti_dropped.fetch_add(dropped, std::memory_order_relaxed);
    losses_.note(dropped, before, monotonic_ns());
  }
  uint64_t oldest = pool_.oldest_lent();
  uint64_t certain = now - slack_ns;
  // What is still running took a part of the window, and nobody knows which. With a
  // mark from after its end the window would be judged.
  bool rest = phase_ != Phase::kOn && rest_.stopped_ns != 0 && !rest_.lost;
  if (rest && told_ns_ <= certain && backlog_.has_unended()) certain = told_ns_ - 1;
  outbox_.set_mark(oldest < certain ? oldest : certain);
  deliver_waiting(Patience::kNone);
}

// A forced flush hands out records of what is still running, without its end, and what
// the device has not come to is lost by it. So it comes last: when nothing runs any
// more, or CUPTI keeps a buffer although nothing has ended for long.
void Tracer::collect_rest(bool all_is_done) {
  uint64_t now = monotonic_ns();
  if (!all_is_done) {
    flush(kFlushCompleted, 0);
    // A device that is behind the host may work on what the window launched for long.
    uint64_t operations = backlog_.operations();
    if (operations != rest_.seen) rest_.moved_ns = now;
    rest_.quiet = operations == rest_.seen ? rest_.quiet + 1 : 0;
    rest_.seen = operations;
    bool keeps_some = pool_.oldest_lent() != UINT64_MAX;
    bool quiet = rest_.quiet >= kQuietFlushes;
    bool more = (keeps_some && now < rest_.stopped_ns + kRestPatienceNs) ||
                (backlog_.has_unended() && now < rest_.moved_ns + kRestPatienceNs &&
                 now < rest_.stopped_ns + kUnendedPatienceNs);
    if (!quiet || more) {
      rest_.due_ns = now + (kRestPeriodNs << (quiet ? 0 : rest_.quiet));
      return;
    }
    lose_unended();
    if (!keeps_some) {
      rest_.due_ns = 0;
      return;
    }
  }
  rest_.due_ns = 0;
  flush(kFlushForced, 0);
  if (pool_.all_decoded()) lose_unended();
}

// After that nothing comes of what CUPTI had, so it is asked once more. What it lends
// itself while it goes is lost.
void Tracer::take_down() {
  flush(kFlushForced, 0);
  if (!is_quiet()) return;
  Result result = kSuccess;
  if (!takedown_.run(api_, &result)) return;
  if (result != kSuccess) {
    header().cupti_result.store(static_cast<uint32_t>(result),
                                std::memory_order_relaxed);
    return;
  }
  backlog_.forget();
  uint64_t since = pool_.reclaim();
  if (since != UINT64_MAX) tell_lost(since, monotonic_ns());
}

}  // namespace lull::cupti
