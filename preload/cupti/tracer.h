// Turns CUPTI on and off, and keeps the books of a window.
//
//            a window begins                     a window ends
//   kOff ------------------------> kOn --------------------------> kOff
//    |  \                           |                               (what is still
//    |   \ a CUPTI call failed      | another user begins            running is
//    |    v                         v                                collected later)
//    |   kDead                  kYielded --- it is gone ---> kOff
//    +---- no library: tried again later
//
// One thread at a time works on it, whoever comes by when something is due; the
// others go on. CUPTI's callbacks never take that lock, and never call into CUPTI
// beyond reading records, names and the clock.
//
// A fork child inherits CUPTI's memory without its threads: a tracer that has loaded
// it is dead there.
#pragma once

#include <sys/types.h>

#include <atomic>

#include "preload/abi/segment.h"
#include "preload/cupti/backlog.h"
#include "preload/cupti/buffers.h"
#include "preload/cupti/clock.h"
#include "preload/cupti/decode.h"
#include "preload/cupti/delivery.h"
#include "preload/cupti/forwarding.h"
#include "preload/cupti/other_users.h"
#include "preload/cupti/outbox.h"
#include "preload/cupti/schedule.h"
#include "preload/cupti/self_time.h"
#include "preload/cupti/takedown.h"
#include "preload/cupti/waiting.h"

namespace lull::cupti {

class Tracer {
 public:
  using Loader = abi::CuptiState (*)(Api*, Result*);

  // All zero but for the loader: in .bss. nullptr: load_library().
  explicit constexpr Tracer(Loader loader = nullptr) : loader_(loader) {}
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  // --- called by the hooks (gpu.h) -----------------------------------------------
  void prepare(char* segment);
  void poll(char* segment);
  void settle();
  void step_boundary(char* segment);
  // `all`: for all that any device had to do at since_ns.
  void synchronized(char* segment, bool all, uint64_t since_ns);
  void at_exit();

  // --- called around another user's call (interpose.cc) -----------------------------
  enum class OtherCall { kPrepare, kEnable, kDisable, kFinalize, kSubscribe };

  // Returns once we are out of the way. kind: of kEnable and kDisable.
  void before_other(OtherCall call, Kind kind = {});
  void after_flush(uint32_t flag);
  void after_subscribe(const void* handle);
  void after_unsubscribe(const void* handle);
  // Remembers the callbacks of another user. True: `original` is of the libcupti that
  // we trace with, so register ours in place of them. They are called through to, and
  // no buffer ever comes back to the wrong one of us.
  bool delegate(RegisterCallbacks original, BufferRequested requested,
                BufferCompleted completed);

  // --- called by CUPTI ------------------------------------------------------------
  void requested(uint8_t** buffer, size_t* size, size_t* max_records);
  // `own_thread`: one of CUPTI's, not the program's.
  void completed(void* context, uint32_t stream, uint8_t* data, size_t size,
                 size_t valid, bool own_thread);

 private:
  enum class Phase : uint32_t { kOff, kOn, kYielded, kDead };
  class Lock;

  bool is_ours() const;
  Decoder decoder();
  abi::SegmentHeader& header() const { return abi::SegmentView(segment_).header(); }
  void set_state(abi::CuptiState state);
  void begin_anew(char* segment);
  void describe();

  // tracer_plan.cc
  Wanted decide() const;
  bool is_behind() const {
    return waiting_.behind.load(std::memory_order_relaxed) &&
           phase_.load(std::memory_order_relaxed) == Phase::kOn;
  }
  Wanted prolonged(const Wanted& wanted, uint64_t now);
  void begin_active(uint64_t now);
  bool round_is_over(uint64_t now) const;
  void catch_up(uint64_t now, bool look);
  void take_steps(uint64_t now);
  void take_arming();
  uint64_t end_of_tracing(uint64_t now) const;

  // tracer.cc: doing it
  void look_after(uint64_t now, bool at_boundary);
  void end_left_over(uint64_t now);
  void follow(const Wanted& wanted, uint64_t now);
  void yield(abi::TracingReason reason);
  void make_way();
  void tell(abi::TracingState state, abi::TracingReason reason, uint64_t when);
  void emit(const abi::Event& event);
  void send_outbox();
  void describe_devices_once(uint64_t now);
  bool is_quiet() const;
  void schedule_next(uint64_t now);

  // tracing.cc: the calls into CUPTI
  bool load(uint64_t now);
  void start(const Wanted& wanted, uint64_t now);
  bool enable_all(Result* result);
  void let_cupti_flush();
  void switch_off();
  void stop(abi::TracingReason reason);
  void fail(Result result);
  void note_silence(uint64_t now);
  void tell_lost(uint64_t since, uint64_t now);
  void lose_unended();
  void flush(uint32_t flag, uint64_t slack_ns);
  void collect_rest(bool all_is_done);
  void take_down();

  // callbacks.cc
  void deliver_waiting(Patience patience);
  void lose_waiting();
  void lose_scratch(uint8_t* data, size_t valid, uint64_t now);

  Loader loader_;
  std::atomic<uint32_t> busy_{0};

  // Constant once loaded_ is set.
  Api api_ = {};
  std::atomic<bool> loaded_{false};
  pid_t prepared_by_ = 0;
  pid_t loaded_by_ = 0;  // another process: what we have is inherited

  char* segment_ = nullptr;
  abi::CuptiState state_ = {};           // the one that its header tells
  std::atomic<uint64_t> begun_ns_{0};    // since when records are of this segment
  std::atomic<uint32_t> generation_{0};  // 0: not prepared

  std::atomic<uint64_t> boundaries_{0};  // steps that are not counted yet
  // Under the lock.
  std::atomic<Phase> phase_{Phase::kOff};
  bool left_over_ = false;  // on since an earlier segment: to be switched off first
  abi::TracingState told_ = abi::TracingState::kOff;
  uint64_t told_ns_ = 0;        // since when
  uint32_t window_ = 0;         // the one told of last
  uint32_t windows_begun_ = 0;  // where they are not numbered by steps
  uint32_t arming_ = 0;         // the one that steps count from
  bool slept_ = false;          // launches may not have been counted
  uint32_t first_window_ = 0;   // of that arming
  abi::TracingReason yield_reason_ = {};
  uint64_t try_again_ns_ = 0;    // no start before
  bool uses_gpu_ = false;        // only then is CUPTI loaded
  uint32_t refused_window_ = 0;  // 1 + the one that was unreadable; 0: none
  Rest rest_;
  uint64_t steps_ = 0;
  bool at_boundary_ = false;  // a step begins just now
  Waiting waiting_;
  std::atomic<uint64_t> last_flush_ns_{0};
  std::atomic<uint64_t> passed_on_ns_{0};  // what became events had ended by then
  uint64_t started_ns_ = 0;
  uint64_t requests_at_start_ = 0, calls_at_start_ = 0;
  int thread_id_type_ = kThreadIdDefault;
  uint32_t devices_ = 0;  // 0: not described yet
  bool exit_registered_ = false;
  OtherUsers others_;
  Takedown takedown_;
  Outbox outbox_;

  // Read by callbacks.
  std::atomic<bool> thread_ids_{false};
  std::atomic<bool> exiting_{false};
  Forwarding forwarding_;
  BufferPool pool_;
  ClockSamples clock_;
  CallNames names_;
  ContextDevices contexts_;
  Losses losses_;
  Backlog backlog_;
  Endurance endurance_;
};

// The one of this process. Tests put another one in its place.
extern Tracer* g_tracer __attribute__((visibility("hidden")));

// What is registered with CUPTI: g_tracer's requested() and completed().
void on_buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
void on_buffer_completed(void* context, uint32_t stream, uint8_t* data, size_t size,
                         size_t valid);

}  // namespace lull::cupti
