#include "daemon/attach/inject/tracee.h"

#include <elf.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/attach/inject/proc.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"

namespace lull::inject {
namespace {

constexpr long kShortPauseNs = 5'000;
constexpr long kLongPauseNs = 100'000;
constexpr int kShortPauses = 20;
constexpr long kTickNs = 10'000'000;
constexpr int kPollsPerCheck = 50;

// A thread that is slow to stop waits for a processor, perhaps for this one.
void Pause(int polls) {
  timespec pause = {0, polls < kShortPauses ? kShortPauseNs : kLongPauseNs};
  nanosleep(&pause, nullptr);
}

bool IsEnding(pid_t pid, pid_t tid) {
  char state = StateOf(pid, tid);
  return state == 0 || state == 'Z' || state == 'X';
}

void* AsPointer(uint64_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

// A stopped thread waits for this one: short pauses are short, and where the processor
// is contended this thread comes first.
Held HeldSince(absl::Time begin, absl::Duration waited, pid_t pid, pid_t tid) {
  const absl::Duration time = SteadyNow() - begin;
  const absl::Duration more = RunDelay(pid, tid) - waited;
  return {time, std::clamp(more, absl::ZeroDuration(), time)};
}

void BeQuick() {
  prctl(PR_SET_TIMERSLACK, 1);
  sched_param first = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &first) == 0) return;
  // Without the privilege: a short slice, which is served soon (Linux 6.12).
  struct {
    uint32_t size = 48;
    uint32_t policy = SCHED_OTHER;
    uint64_t flags = 0;
    int32_t nice = 0;
    uint32_t priority = 0;
    uint64_t runtime_ns = 100'000;
    uint64_t deadline_ns = 0;
    uint64_t period_ns = 0;
  } slice;
  slice.nice = getpriority(PRIO_PROCESS, 0);
  syscall(SYS_sched_setattr, 0, &slice, 0);
}

Ticker::Ticker() {
  const int signal = SIGRTMAX - 1;
  static const bool ready = [&] {
    struct sigaction action = {};
    action.sa_handler = [](int) {};  // without SA_RESTART: waits end with EINTR
    return sigaction(signal, &action, nullptr) == 0;
  }();
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = signal;
  event._sigev_un._tid = gettid();
  running_ = ready && timer_create(CLOCK_MONOTONIC, &event, &timer_) == 0;
  itimerspec ticks = {{0, kTickNs}, {0, kTickNs}};
  if (running_) timer_settime(timer_, 0, &ticks, nullptr);
}

Ticker::~Ticker() {
  if (running_) timer_delete(timer_);
}

Tracee::~Tracee() { LetGo().IgnoreError(); }

absl::Status Tracee::Problem(const char* what) const {
  int error = errno;
  if (error == ESRCH) {
    return absl::NotFoundError(absl::StrCat("thread ", tid_, " has ended"));
  }
  return ErrnoStatus(error, absl::StrCat(what, " of thread ", tid_));
}

absl::Status Tracee::Seize() {
  if (ptrace(PTRACE_SEIZE, tid_, nullptr, AsPointer(PTRACE_O_TRACESYSGOOD)) != 0) {
    return Problem("ptrace");
  }
  seized_ = true;
  return absl::OkStatus();
}

absl::Status Tracee::Interrupt() {
  last_seen_running_ = SteadyNow();
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return Problem("stopping");
  return absl::OkStatus();
}

Stop Tracee::Wait(absl::Time deadline) {
  for (int polls = 1;; ++polls) {
    // The first stop is polled for, so that it is known when it began. Later the
    // kernel's wake-up is quicker.
    const bool poll = !was_stopped_ || !ticker_.running();
    int status = 0;
    absl::Time looked = SteadyNow();
    pid_t got = waitpid(tid_, &status, __WALL | (poll ? WNOHANG : 0));
    if (got == tid_ && WIFSTOPPED(status)) return OnStop(status);
    const bool still_runs = got == 0 || (got < 0 && errno == EINTR);
    if (!still_runs) {
      seized_ = false;
      return Stop::kGone;
    }
    if (looked >= deadline) return Stop::kDeadline;
    last_seen_running_ = looked;
    // A main thread that ends before the others is not reported while they live.
    if ((!poll || polls % kPollsPerCheck == 0) && IsEnding(pid_, tid_)) {
      return Stop::kGone;
    }
    if (poll) Pause(polls);
  }
}

Stop Tracee::OnStop(int status) {
  stopped_ = true;
  was_stopped_ = true;
  int signal = WSTOPSIG(status);
  if (status >> 16 == PTRACE_EVENT_STOP) {
    return signal == SIGTRAP ? Stop::kAsked : Stop::kGroup;
  }
  if (signal == (SIGTRAP | 0x80)) return Stop::kSyscall;
  signal_ = signal;
  return Stop::kSignal;
}

absl::Status Tracee::Resume(int request) {
  auto name = static_cast<__ptrace_request>(request);
  if (ptrace(name, tid_, nullptr, AsPointer(signal_)) != 0) return Problem("resuming");
  stopped_ = false;
  signal_ = 0;
  return absl::OkStatus();
}

absl::Status Tracee::Continue() { return Resume(PTRACE_CONT); }
absl::Status Tracee::ContinueToSyscall() { return Resume(PTRACE_SYSCALL); }

absl::Status Tracee::LetGo() {
  if (!seized_ || !stopped_) return absl::OkStatus();
  seized_ = false;
  return Resume(PTRACE_DETACH);
}

absl::Status Tracee::GetRegisters(Registers* registers) const {
  *registers = {};
  for (const RegisterPart& part : arch_.Parts()) {
    iovec area = {registers->bytes.data() + part.offset, part.size};
    if (ptrace(PTRACE_GETREGSET, tid_, part.set, &area) != 0 && part.needed) {
      return Problem("reading registers");
    }
    registers->size = std::max(registers->size, part.offset + part.size);
  }
  return absl::OkStatus();
}

absl::Status Tracee::SetRegisters(const Registers& registers) const {
  for (const RegisterPart& part : arch_.Parts()) {
    iovec area = {const_cast<uint8_t*>(registers.bytes.data()) + part.offset,
                  part.size};
    if (part.restored && ptrace(PTRACE_SETREGSET, tid_, part.set, &area) != 0) {
      return Problem("setting registers");
    }
  }
  return absl::OkStatus();
}

absl::Status Tracee::GetState(ThreadState* state) const {
  std::vector<uint8_t>& bytes = state->vector.bytes;
  for (int set : arch_.VectorSets()) {
    bytes.resize(arch_.MaxVectorSize());
    iovec area = {bytes.data(), bytes.size()};
    if (ptrace(PTRACE_GETREGSET, tid_, set, &area) == 0) {
      bytes.resize(area.iov_len);
      state->vector.set = set;
      break;
    }
    if (set == arch_.VectorSets().back()) return Problem("reading vector registers");
  }
  if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof(state->signal_mask),
             &state->signal_mask) != 0) {
    return Problem("reading the signal mask");
  }
  return absl::OkStatus();
}

absl::Status Tracee::SetVector(const VectorState& vector) const {
  iovec area = {const_cast<uint8_t*>(vector.bytes.data()), vector.bytes.size()};
  if (ptrace(PTRACE_SETREGSET, tid_, vector.set, &area) != 0) {
    return Problem("setting vector registers");
  }
  return absl::OkStatus();
}

absl::Status Tracee::SetSignalMask(uint64_t mask) const {
  if (ptrace(PTRACE_SETSIGMASK, tid_, sizeof(mask), &mask) != 0) {
    return Problem("setting the signal mask");
  }
  return absl::OkStatus();
}

bool Tracee::InRestartableSequence(uint64_t pc) const {
  struct {
    uint64_t area;
    uint32_t size, signature, flags, padding;
  } configuration = {};
  auto get = static_cast<__ptrace_request>(PTRACE_GET_RSEQ_CONFIGURATION);
  if (ptrace(get, tid_, AsPointer(sizeof(configuration)), &configuration) <= 0 ||
      configuration.area == 0) {
    return false;  // Linux before 5.13, or the thread has registered none
  }
  constexpr uint64_t kCurrent = 8;  // rseq_cs in struct rseq
  uint64_t current = 0;
  struct {
    uint32_t version, flags;
    uint64_t start, size, abort;
  } sequence;
  return ReadMemory(pid_, configuration.area + kCurrent, &current, sizeof(current)) &&
         current != 0 && ReadMemory(pid_, current, &sequence, sizeof(sequence)) &&
         pc - sequence.start < sequence.size;
}

absl::Status Tracee::GrowStack(uint64_t address) const {
  errno = 0;
  long word = ptrace(PTRACE_PEEKDATA, tid_, AsPointer(address), nullptr);
  if (errno != 0 ||
      ptrace(PTRACE_POKEDATA, tid_, AsPointer(address), AsPointer(word)) != 0) {
    return Problem("writing to the stack");
  }
  return absl::OkStatus();
}

}  // namespace lull::inject
