#include "daemon/attach/inject/call.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>

#include "absl/strings/str_cat.h"
#include "daemon/attach/inject/inject.h"
#include "daemon/attach/inject/proc.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"

namespace lull::inject {
namespace {

// A call that takes longer goes on without us.
constexpr absl::Duration kLongestCall = absl::Seconds(30);
constexpr absl::Duration kLongestStopInCall = absl::Seconds(2);

constexpr uint64_t Bit(int signal) { return 1ull << (signal - 1); }

// What a thread may cause itself: blocked, the kernel would kill for it.
constexpr uint64_t kOwnSignals =
    Bit(SIGSEGV) | Bit(SIGBUS) | Bit(SIGILL) | Bit(SIGFPE) | Bit(SIGTRAP) | Bit(SIGSYS);

uint64_t Down(uint64_t address, uint64_t size) {
  return (address - size) & ~uint64_t{15};
}

const char* NameOf(int64_t call) {
  switch (call) {
    case SYS_openat:
      return "opening a file";
    case SYS_mmap:
      return "mapping a file (is its file system mounted noexec?)";
    case SYS_mprotect:
      return "making memory executable";
    default:
      return nullptr;
  }
}

}  // namespace

absl::Status Call::Prepare(const Registers& registers, std::string_view library,
                           std::string_view argument) {
  LULL_RETURN_IF_ERROR(thread_.GetState(&state_));
  state_.general = arch_.WithTimePassed(registers, passed_);
  Place place = arch_.Where(state_.general);
  if (errno_offset_ != 0) {
    errno_at_ = place.tp + errno_offset_;
    if (!ReadMemory(thread_.pid(), errno_at_, &errno_, sizeof(errno_))) errno_at_ = 0;
  }
  uint64_t top = place.sp - arch_.RedZone();
  argument_size_ = argument.size();
  argument_at_ = Down(top, argument.size());
  library_at_ = Down(argument_at_, library.size() + 1);
  result_at_ = Down(library_at_, sizeof(int64_t));
  frame_ = arch_.MakeFrame(state_, trampoline_, result_at_);

  std::string bytes = frame_.bytes;
  bytes.resize(top - frame_.address, '\0');
  auto put = [&](uint64_t at, const void* from, size_t size) {
    memcpy(bytes.data() + (at - frame_.address), from, size);
  };
  int64_t not_set = kResultNotSet;
  put(result_at_, &not_set, sizeof(not_set));
  put(library_at_, library.data(), library.size());
  put(argument_at_, argument.data(), argument.size());
  if (WriteMemory(thread_.pid(), frame_.address, bytes.data(), bytes.size())) {
    return absl::OkStatus();
  }
  // The main thread's stack is mapped down to what was used before.
  LULL_RETURN_IF_ERROR(thread_.GrowStack(frame_.address & ~uint64_t{7}));
  if (!WriteMemory(thread_.pid(), frame_.address, bytes.data(), bytes.size())) {
    return ErrnoStatus(errno, "writing to the stack of the process");
  }
  return absl::OkStatus();
}

absl::Status Call::Load(uint64_t dlopen, uint64_t flags) {
  return Run(dlopen, {library_at_, flags, 0});
}

absl::Status Call::Invoke(uint64_t function, int64_t* result) {
  LULL_RETURN_IF_ERROR(Run(function, {argument_at_, argument_size_, result_at_}));
  if (!ReadMemory(thread_.pid(), result_at_, result, sizeof(*result))) {
    return ErrnoStatus(errno, "reading the result from the process");
  }
  return absl::OkStatus();
}

absl::Status Call::Run(uint64_t function, const std::array<uint64_t, 3>& arguments) {
  // The function before may have used its return address's place for itself.
  if (!WriteMemory(thread_.pid(), frame_.address, &trampoline_, sizeof(trampoline_))) {
    return ErrnoStatus(errno, "writing to the stack of the process");
  }
  // Registers first: from here on the frame restores whatever else is changed.
  LULL_RETURN_IF_ERROR(
      thread_.SetRegisters(arch_.Calling(state_.general, function, arguments, frame_)));
  running_ = true;
  LULL_RETURN_IF_ERROR(thread_.SetVector(arch_.FreshVector(state_.vector)));
  LULL_RETURN_IF_ERROR(thread_.SetSignalMask(~kOwnSignals));
  return RunToReturn();
}

absl::Status Call::RunToReturn() {
  const absl::Time deadline = SteadyNow() + kLongestCall;
  for (;;) {
    LULL_RETURN_IF_ERROR(thread_.ContinueToSyscall());
    switch (thread_.Wait(deadline)) {
      case Stop::kSyscall: {
        Registers registers;
        LULL_RETURN_IF_ERROR(thread_.GetRegisters(&registers));
        if (arch_.ConsumesFrame(registers, frame_.address))
          return StayBefore(registers);
        Place place = arch_.Where(registers);
        if (place.call >= 0 && place.result < 0 && place.result != -ENOSYS &&
            NameOf(place.call) != nullptr) {
          refused_call_ = place.call;
          refused_error_ = static_cast<int>(-place.result);
        }
        break;
      }
      case Stop::kAsked:
      case Stop::kGroup:
        // Job control: this thread joins the others when it is let go. Whatever it
        // waited for just now has taken the place of what it waited for before.
        time_lost_ = true;
        break;
      case Stop::kSignal:
        LULL_RETURN_IF_ERROR(OnSignal());
        break;
      case Stop::kGone:
        running_ = false;
        return absl::NotFoundError("the process ended during the call");
      case Stop::kDeadline:
        return OnDeadline();
    }
  }
}

// A harmless call stands in for the one that would consume the frame, and the thread
// stops behind it, from where it would go back to the trampoline by itself. There its
// registers are all its own: at the entry of a call the result of that one comes on
// top, which on aarch64 is where a function's first argument is.
absl::Status Call::StayBefore(const Registers& registers) {
  LULL_RETURN_IF_ERROR(thread_.SetRegisters(arch_.AboutToConsume(registers)));
  LULL_RETURN_IF_ERROR(thread_.ContinueToSyscall());
  switch (thread_.Wait(SteadyNow() + kLongestStopInCall)) {
    case Stop::kSyscall:
      return absl::OkStatus();
    case Stop::kGone:
      running_ = false;
      return absl::NotFoundError("the process ended during the call");
    default:
      running_ = false;
      return absl::InternalError("a thread did not stop after the call");
  }
}

absl::Status Call::OnSignal() {
  int signal = thread_.signal();
  // A sandbox's handler stands in for the system call.
  if (signal == SIGSYS || (kOwnSignals & Bit(signal)) == 0) return absl::OkStatus();
  thread_.DropSignal();
  LULL_RETURN_IF_ERROR(Restore(arch_.GivenBack(state_.general, time_lost_)));
  return absl::InternalError(absl::StrCat(
      "the call crashed in the process with ", strsignal(signal),
      "; its thread was put back and goes on, but what was begun is half-done"));
}

absl::Status Call::OnDeadline() {
  running_ = false;
  LULL_RETURN_IF_ERROR(thread_.Interrupt());
  thread_.Wait(SteadyNow() + kLongestStopInCall);
  LULL_RETURN_IF_ERROR(thread_.LetGo());
  return absl::DeadlineExceededError(absl::StrCat("the call has not returned in ",
                                                  absl::FormatDuration(kLongestCall),
                                                  "; the thread goes on when it does"));
}

// From the end of a call to a stop on the kernel's way back to the trampoline, from
// which it restarts what it has interrupted.
absl::Status Call::StopOnTheWay() {
  LULL_RETURN_IF_ERROR(thread_.Interrupt());
  Stop stop;
  do {
    LULL_RETURN_IF_ERROR(thread_.Continue());
    stop = thread_.Wait(SteadyNow() + kLongestStopInCall);
  } while (stop == Stop::kSyscall);
  if (stop == Stop::kGone) return absl::NotFoundError("the process has ended");
  if (stop == Stop::kDeadline) {
    return absl::InternalError("a thread did not stop after the call");
  }
  return absl::OkStatus();
}

absl::Status Call::GiveBack() {
  if (!running_) return thread_.LetGo();
  LULL_RETURN_IF_ERROR(StopOnTheWay());
  Registers here;
  LULL_RETURN_IF_ERROR(thread_.GetRegisters(&here));
  if (auto entry = arch_.EntryForRestart(here, state_.general)) {
    // Once more to where the frame would be consumed, and to the end of the call that
    // is made in its place.
    LULL_RETURN_IF_ERROR(thread_.SetRegisters(*entry));
    LULL_RETURN_IF_ERROR(RunToReturn());
    LULL_RETURN_IF_ERROR(Restore(arch_.Interrupted(state_.general, time_lost_)));
  } else {
    LULL_RETURN_IF_ERROR(Restore(arch_.GivenBack(state_.general, time_lost_)));
  }
  return thread_.LetGo();
}

absl::Status Call::Restore(const Registers& registers) {
  // The one thing that a frame cannot restore. Code that has been interrupted between
  // a failure and the look at its reason must find that reason.
  if (errno_at_ != 0) WriteMemory(thread_.pid(), errno_at_, &errno_, sizeof(errno_));
  LULL_RETURN_IF_ERROR(thread_.SetVector(state_.vector));
  LULL_RETURN_IF_ERROR(thread_.SetSignalMask(state_.signal_mask));
  // Last: until now the frame would have done all of it.
  LULL_RETURN_IF_ERROR(thread_.SetRegisters(registers));
  running_ = false;
  return absl::OkStatus();
}

std::string Call::Refusal() const {
  const char* name = NameOf(refused_call_);
  if (name == nullptr) return "";
  return absl::StrCat(name, ": ", strerror(refused_error_));
}

}  // namespace lull::inject
