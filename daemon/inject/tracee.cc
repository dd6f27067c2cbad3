#include "daemon/inject/tracee.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "daemon/base/status.h"
#include "daemon/inject/proc.h"

namespace lull::inject {
namespace {

// A wait for a stop looks this often at first, and more and more seldom.
constexpr long kFirstPauseNs = 5'000;
constexpr long kLongestPauseNs = 500'000;

void Pause(long ns) {
  timespec pause = {0, ns};
  nanosleep(&pause, nullptr);
}

void* AsPointer(uint64_t value) { return reinterpret_cast<void*>(value); }

}  // namespace

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
  if (ptrace(PTRACE_INTERRUPT, tid_, nullptr, nullptr) != 0) return Problem("stopping");
  return absl::OkStatus();
}

Stop Tracee::Wait(absl::Time deadline) {
  long pause = kFirstPauseNs;
  for (;;) {
    int status = 0;
    pid_t got = waitpid(tid_, &status, __WALL | WNOHANG);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 || (got == tid_ && !WIFSTOPPED(status))) {
      seized_ = false;
      return Stop::kGone;
    }
    if (got == tid_) {
      stopped_ = true;
      int signal = WSTOPSIG(status);
      if (status >> 16 == PTRACE_EVENT_STOP) {
        return signal == SIGTRAP ? Stop::kAsked : Stop::kGroup;
      }
      if (signal == (SIGTRAP | 0x80)) return Stop::kSyscall;
      signal_ = signal;
      return Stop::kSignal;
    }
    if (absl::Now() >= deadline) return Stop::kDeadline;
    Pause(pause);
    pause = std::min(pause + pause / 8, kLongestPauseNs);
    // A main thread that ends before the others is not reported while they live.
    if (pause > kLongestPauseNs / 8) {
      char state = StateOf(pid_, tid_);
      if (state == 0 || state == 'Z' || state == 'X') return Stop::kGone;
    }
  }
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
  iovec area = {registers->bytes.data(), registers->bytes.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, NT_PRSTATUS, &area) != 0) {
    return Problem("reading registers");
  }
  registers->size = area.iov_len;
  return absl::OkStatus();
}

absl::Status Tracee::SetRegisters(const Registers& registers) const {
  iovec area = {const_cast<uint8_t*>(registers.bytes.data()), registers.size};
  if (ptrace(PTRACE_SETREGSET, tid_, NT_PRSTATUS, &area) != 0) {
    return Problem("setting registers");
  }
  return absl::OkStatus();
}

absl::Status Tracee::GetState(ThreadState* state) const {
  LULL_RETURN_IF_ERROR(GetRegisters(&state->general));
  state->vector.resize(arch_.MaxVectorSize());
  iovec area = {state->vector.data(), state->vector.size()};
  if (ptrace(PTRACE_GETREGSET, tid_, arch_.VectorSet(), &area) != 0) {
    return Problem("reading vector registers");
  }
  state->vector.resize(area.iov_len);
  if (ptrace(PTRACE_GETSIGMASK, tid_, sizeof(state->signal_mask),
             &state->signal_mask) != 0) {
    return Problem("reading the signal mask");
  }
  return absl::OkStatus();
}

absl::Status Tracee::SetVector(const std::vector<uint8_t>& vector) const {
  iovec area = {const_cast<uint8_t*>(vector.data()), vector.size()};
  if (ptrace(PTRACE_SETREGSET, tid_, arch_.VectorSet(), &area) != 0) {
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
