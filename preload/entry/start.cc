#include "preload/entry/start.h"

#include <link.h>
#include <string.h>

#include <initializer_list>

#include "preload/abi/handshake.h"
#include "preload/cupti/gpu.h"
#include "preload/entry/handshake.h"
#include "preload/entry/relay_launcher.h"
#include "preload/entry/sandbox.h"
#include "preload/entry/segment.h"
#include "preload/entry/state_page.h"
#include "preload/hooks/record.h"
#include "preload/hooks/wait_recorder.h"
#include "preload/python/api.h"
#include "preload/python/python.h"
#include "preload/ring/backing.h"
#include "preload/ring/writer.h"
#include "preload/stacks/python_layout.h"
#include "preload/stacks/stacks.h"
#include "preload/support/clock.h"
#include "preload/support/raw_syscall.h"
#include "preload/support/text.h"

// What pthread_atfork() is in glibc, linked into each library. Weak: another libc has
// none.
extern "C" {
extern void* __dso_handle;
__attribute__((weak)) int __register_atfork(void (*prepare)(), void (*parent)(),
                                            void (*child)(), void* dso);
}

namespace lull {
namespace {

constexpr char kDataWorkerFile[] = "torch/utils/data/_utils/worker.py";
constexpr uint64_t kRelayStartPauseNs = 5'000'000;
constexpr uint64_t kLongestRegretNs = 20'000'000;
constexpr uint64_t kHandshakeNs = abi::kHandshakeTimeoutMs * uint64_t{1'000'000};
constexpr uint64_t kLongestPreparationNs = 250'000'000;
constexpr uint64_t kWaitForLookNs = 1'000'000;

std::atomic<bool> g_has_python{false};
// Survives fork, unlike the state: children of a process that was detached rest, too.
std::atomic<bool> g_resting{false};

// A fork child has neither mode nor owner: it is on its own now.
Mode leave_unknown(StatePage* page) {
  page->owner.store(raw_getpid(), std::memory_order_relaxed);
  Mode expected = Mode::kUnknown;
  page->state.mode.compare_exchange_strong(expected, Mode::kCandidate,
                                           std::memory_order_acq_rel);
  return expected == Mode::kUnknown ? Mode::kCandidate : expected;
}

// Once in the life of a worker, on its main thread, which allocates tensors here. It
// makes system calls, and so nothing below a filter that may kill for them.
__attribute__((cold, noinline)) void tell_worker() {
  abi::WorkerHello hello = {};
  if (settings().socket[0] == 0 || settings().no_samples || !python_is_main_thread() ||
      !python_describe_thread(&hello) || has_filter_of_its_own()) {
    return;
  }
  SignalsBlocked signals_blocked;
  say_worker(settings().socket, &hello, monotonic_ns() + kLongestRegretNs);
}

// A worker stays one: asked once, answered for the life of the process, so that a
// worker's tensors cost a load each and no walk over the stack.
bool is_data_worker(StatePage* page, Trigger trigger) {
  if (page->data_worker.load(std::memory_order_relaxed) != 0) return true;
  if (trigger != Trigger::kTensor || !has_python()) return false;
  if (!python_stack_contains(kDataWorkerFile)) return false;
  uint32_t before = 0;
  if (page->data_worker.compare_exchange_strong(before, 1, std::memory_order_relaxed)) {
    tell_worker();
  }
  return true;
}

bool has_reason(StatePage* page, Trigger trigger) {
  Circumstances now = {page->loaded_here.load(std::memory_order_relaxed) != 0,
                       settings().kind, false, settings().workers};
  if (trigger == Trigger::kTensor && !now.workers_wanted) {
    now.data_worker = is_data_worker(page, trigger);
  }
  return is_reason_to_record(trigger, now);
}

Memory memory_to_give() {
  return settings().no_samples ? Memory::kKept : Memory::kGiven;
}

Handshake hand_to_own_relay(int memfd) {
  char path[kSocketPathSize];
  auto session = static_cast<pid_t>(syscall(SYS_getsid, 0));
  if (!automatic_socket(settings(), session, path)) return Handshake::kRefused;
  uint64_t deadline = monotonic_ns() + kHandshakeNs;
  Handshake outcome =
      hand_over(path, memfd, Peer::kSameUser, memory_to_give(), deadline);
  if (outcome != Handshake::kUnreachable) return outcome;
  if (!launch_relay(settings(), path)) return Handshake::kRefused;
  while (outcome == Handshake::kUnreachable && monotonic_ns() < deadline) {
    raw_poll_one(-1, 0, kRelayStartPauseNs);
    outcome = hand_over(path, memfd, Peer::kSameUser, memory_to_give(), deadline);
  }
  return outcome;
}

// StatePage::starting, where anybody waits there: nobody does for start_late().
class AsksRelay {
 public:
  AsksRelay() { change(kBegins, kAsksRelay); }
  ~AsksRelay() { change(kAsksRelay, kPrepares); }
  AsksRelay(const AsksRelay&) = delete;
  AsksRelay& operator=(const AsksRelay&) = delete;

 private:
  static void change(uint32_t from, uint32_t to) {
    state_page()->starting.compare_exchange_strong(from, to, std::memory_order_release,
                                                   std::memory_order_relaxed);
  }
};

Handshake hand_to_relay(int memfd) {
  AsksRelay asks_relay;
  if (settings().socket[0] == 0) return hand_to_own_relay(memfd);
  uint64_t deadline = monotonic_ns() + kHandshakeNs;
  return hand_over(settings().socket, memfd, Peer::kAny, memory_to_give(), deadline);
}

// A process that cannot be recorded should not be missing without a word.
void regret() {
  if (settings().socket[0] == 0) return;
  say_unrecorded(settings().socket, monotonic_ns() + kLongestRegretNs);
}

// The thread that starts gets its ring here, where it may still take its time.
void prepare(char* segment) {
  g_has_python.store(python_find(), std::memory_order_relaxed);
  stacks_prepare(segment);
  python_want(true);
  if (has_python()) python_describe(segment);
  wait_recorder_prepare();
}

int is_gpu_library(dl_phdr_info* info, size_t, void*) {
  const char* slash =
      info->dlpi_name == nullptr ? nullptr : strrchr(info->dlpi_name, '/');
  if (slash == nullptr) return 0;
  for (const char* name : {"libcudart", "libcuda.so", "libc10", "libtorch"}) {
    if (starts_with(slash + 1, name)) return 1;
  }
  return 0;
}

// A program that was linked with CUDA or PyTorch will most likely record.
bool has_gpu_library() { return dl_iterate_phdr(is_gpu_library, nullptr) != 0; }

// Events that no ring took: another thread was starting, and took too long.
void count_missed(StatePage* page) {
  uint64_t missed = page->missed.exchange(0);
  if (missed == 0) return;
  char* segment = page->state.segment.load(std::memory_order_relaxed);
  abi::SegmentView(segment).header().lost_no_ring.fetch_add(missed,
                                                            std::memory_order_relaxed);
}

// Sequentially consistent on both sides: either we see that recording has begun, or
// start() sees what we add.
char* miss(StatePage* page) {
  page->missed.fetch_add(1);
  if (page->state.mode.load() == Mode::kRecording) count_missed(page);
  return nullptr;
}

// One thread at a time. Also the one that jumped out of its look, and comes back.
bool may_look(StatePage* page) {
  ThreadState* looker = nullptr;
  return page->looker.compare_exchange_strong(looker, &t_thread) || looker == &t_thread;
}

// Threads that begin to work together all have their first event recorded: whoever
// comes second waits for the first, which is done in about a millisecond.
//
// Where it is not, because the relay does not answer, they wait as long as the first
// one does, which makes system calls alone meanwhile and wants no lock of theirs. In
// all else that it does it may want the loader's, which one of them may hold: a quarter
// of a second is enough. One such wait is all that the process pays.
char* await_start(StatePage* page) {
  uint64_t now = monotonic_ns();
  const uint64_t end = now + kHandshakeNs + kLongestPreparationNs;
  uint64_t deadline = now + kLongestPreparationNs;
  uint32_t seen = kIdle;
  for (;; now = monotonic_ns()) {
    // In this order: whoever looks says that it starts before it says that it has
    // looked.
    bool looking = page->looker.load(std::memory_order_acquire) != nullptr;
    uint32_t starting = page->starting.load(std::memory_order_acquire);
    if (starting == kIdle && !looking) break;
    if (page->impatient.load(std::memory_order_relaxed) != 0) return miss(page);
    if (starting != seen || starting == kAsksRelay) {
      seen = starting;
      deadline = now + kLongestPreparationNs < end ? now + kLongestPreparationNs : end;
    }
    if (now >= deadline) {
      page->impatient.store(1, std::memory_order_relaxed);
      // A thread that jumped out of its look, and ended: another one may look.
      page->looker.store(nullptr, std::memory_order_relaxed);
      return miss(page);
    }
    // Nobody is woken after a look: it may have found that no call should be made.
    raw_futex_wait(&page->starting, starting,
                   starting != kIdle ? deadline - now : kWaitForLookNs);
  }
  return recording_segment();
}

void start(State* state) {
  // The segment of an earlier attachment: a thread that has been blocked since then may
  // still write there. It stays mapped for good, and the same place is used again.
  char* earlier = state->segment.load(std::memory_order_relaxed);
  NewSegment segment = create_segment(earlier);
  if (segment.base == nullptr) {
    state->mode.store(Mode::kInert, std::memory_order_release);
    regret();
    return;
  }
  if (hand_to_relay(segment.fd) != Handshake::kAccepted) {
    // A relay that takes the segment later finds that there is nothing in it.
    end_recording(segment.base, abi::EndedBy::kUnanswered);
    discard_segment(segment, earlier);
    state->mode.store(Mode::kInert, std::memory_order_release);
    return;
  }
  close_if_still(segment.fd, segment.file);
  prepare(segment.base);
  state->segment.store(segment.base, std::memory_order_relaxed);
  state->generation.store(next_generation(), std::memory_order_relaxed);
  gpu_prepare(segment.base);
  // Pairs with the acquire in recording_segment(): segment and generation are set.
  state->mode.store(Mode::kRecording);
  count_missed(state_page());
  take_ring(segment.base);
}

}  // namespace

bool is_reason_to_record(Trigger trigger, const Circumstances& now) {
  switch (trigger) {
    case Trigger::kGpuCall:
      return true;
    case Trigger::kTensor:
      return now.workers_wanted || !now.data_worker;
    case Trigger::kFilter:
      return true;
    case Trigger::kPython:
      return now.loaded_here && now.kind == ProcessKind::kOrdinary;
  }
  return false;
}

bool has_python() { return g_has_python.load(std::memory_order_relaxed); }

char* try_start_recording(Trigger trigger) {
  StatePage* page = state_page();
  if (page == nullptr) return nullptr;  // before the constructor, or disabled
  if (g_resting.load(std::memory_order_relaxed)) return nullptr;
  if (has_installed_filter()) return nullptr;
  ErrnoKeeper errno_keeper;
  Mode mode = page->state.mode.load(std::memory_order_acquire);
  if (mode == Mode::kUnknown) mode = leave_unknown(page);
  if (mode == Mode::kRecording) return recording_segment();
  if (mode != Mode::kCandidate) return nullptr;
  if (!has_reason(page, trigger)) return nullptr;
  if (page->starting.load(std::memory_order_relaxed) != kIdle || !may_look(page)) {
    return await_start(page);
  }
  // Before all other system calls.
  if (has_filter_of_its_own()) {
    page->state.mode.compare_exchange_strong(mode, Mode::kInert,
                                             std::memory_order_acq_rel);
    page->looker.store(nullptr, std::memory_order_release);
    return recording_segment();
  }
  // A handler that jumped out of here would leave `starting` set for good.
  SignalsBlocked signals_blocked;
  uint32_t idle = kIdle;
  bool claimed =
      page->starting.compare_exchange_strong(idle, kBegins, std::memory_order_acquire);
  page->looker.store(nullptr, std::memory_order_release);
  if (!claimed) return await_start(page);
  if (page->state.mode.load(std::memory_order_acquire) == Mode::kCandidate) {
    start(&page->state);
  }
  page->starting.store(kIdle, std::memory_order_release);
  raw_futex_wake_all(&page->starting);
  return recording_segment();
}

void initialize() {
  if (!settings().enabled || !create_state_page()) {
    g_state->mode.store(Mode::kInert, std::memory_order_release);
    return;
  }
  // Where the kernel does not wipe the page. A child that nobody told (a raw clone
  // on such a kernel) is the one case left out.
  __register_atfork(nullptr, nullptr, wipe_state_of_parent, &__dso_handle);
  g_has_python.store(python_find(), std::memory_order_relaxed);
  if (has_python() || has_gpu_library()) stacks_load();
  g_state->mode.store(Mode::kCandidate, std::memory_order_release);
  if (has_python()) try_start_recording(Trigger::kPython);
}

bool initialize_late() {
  if (state_page() == nullptr && !create_state_page()) return false;
  State* state = g_state;
  if (state->mode.load(std::memory_order_acquire) == Mode::kRecording) return false;
  state_page()->loaded_here.store(0, std::memory_order_relaxed);
  state->mode.store(Mode::kInert, std::memory_order_release);
  g_has_python.store(python_find(), std::memory_order_relaxed);
  return true;
}

bool start_late() {
  g_resting.store(false, std::memory_order_relaxed);
  // Inert until it records: the hooks of other threads are there already, and would
  // begin on their own.
  SignalsBlocked signals_blocked;
  start(g_state);
  return g_state->mode.load(std::memory_order_acquire) == Mode::kRecording;
}

void rest() {
  g_resting.store(true, std::memory_order_relaxed);
  python_want(false);
  Mode mode = g_state->mode.exchange(Mode::kInert, std::memory_order_acq_rel);
  if (mode == Mode::kRecording) {
    abandon_segment(g_state->segment.load(std::memory_order_relaxed));
  }
}

}  // namespace lull
