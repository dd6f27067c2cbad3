#include "daemon/attach/inject/filters.h"

#include <errno.h>
#include <sys/ptrace.h>

#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/attach/inject/proc.h"
#include "daemon/attach/inject/sleep.h"
#include "daemon/attach/inject/tracee.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"

namespace lull::inject {
namespace {

constexpr absl::Duration kLongestStopOfAll = absl::Seconds(3);
constexpr size_t kMost = 1000;  // filters of a thread; the kernel has a limit, too

absl::StatusOr<SeccompProgram> ReadFilter(pid_t tid, size_t index) {
  auto get = static_cast<__ptrace_request>(PTRACE_SECCOMP_GET_FILTER);
  auto at = reinterpret_cast<void*>(index);
  SeccompProgram program(BPF_MAXINSNS);
  long size = ptrace(get, tid, at, program.data());
  if (size >= 0) {
    program.resize(static_cast<size_t>(size));
    return program;
  }
  switch (errno) {
    case ENOENT:
      return absl::OutOfRangeError("");
    case EINVAL:
      // What a thread without filters is answered, and all by some kernels.
      if (index == 0 && StatusOf(tid, tid, "Seccomp") == "0") {
        return absl::OutOfRangeError("");
      }
      return absl::UnimplementedError("this kernel does not tell filters");
    default:
      return ErrnoStatus(errno, "reading a seccomp filter");
  }
}

absl::StatusOr<std::vector<SeccompProgram>> ReadAll(pid_t tid) {
  std::vector<SeccompProgram> programs;
  while (programs.size() < kMost) {
    absl::StatusOr<SeccompProgram> program = ReadFilter(tid, programs.size());
    if (absl::IsOutOfRange(program.status())) return programs;
    if (!program.ok()) return program.status();
    programs.push_back(*std::move(program));
  }
  return absl::UnavailableError("there are too many filters");
}

absl::Status Stopped(Tracee* thread) {
  LULL_RETURN_IF_ERROR(thread->Interrupt());
  const absl::Time deadline = SteadyNow() + kLongestStopOfAll;
  for (;;) {
    switch (thread->Wait(deadline)) {
      case Stop::kAsked:
        return absl::OkStatus();
      case Stop::kSignal:  // goes on to where it was sent, and the stop comes next
      case Stop::kSyscall:
        LULL_RETURN_IF_ERROR(thread->Continue());
        continue;
      case Stop::kGone:
        return absl::NotFoundError("the thread has ended");
      case Stop::kGroup:
      case Stop::kDeadline:
        return absl::UnavailableError("the thread does not stop");
    }
  }
}

absl::StatusOr<std::vector<SeccompProgram>> ReadStopped(const Arch& arch, pid_t pid,
                                                        pid_t tid, Stops* stops) {
  Tracee thread(pid, tid, arch);
  LULL_RETURN_IF_ERROR(thread.Seize());
  Sleep sleep(arch, pid, tid);
  LULL_RETURN_IF_ERROR(Stopped(&thread));
  const absl::Time begin = thread.last_seen_running();
  const absl::Duration waited = RunDelay(pid, tid);
  auto programs = ReadAll(tid);
  Registers registers;
  LULL_RETURN_IF_ERROR(thread.GetRegisters(&registers));
  sleep.Stopped(&registers);
  const bool sleeping = arch.Where(registers).interrupted;
  registers = arch.WithTimePassed(registers, sleep.Passed());
  LULL_RETURN_IF_ERROR(thread.SetRegisters(arch.GivenBack(registers, false)));
  LULL_RETURN_IF_ERROR(thread.LetGo());
  stops->Add(HeldSince(begin, waited, pid, tid), sleeping);
  return programs;
}

}  // namespace

bool MayReadFilters() {
  constexpr int kCapSysAdmin = 21;
  uint64_t capabilities = 0;
  pid_t self = getpid();
  return absl::SimpleHexAtoi(StatusOf(self, self, "CapEff"), &capabilities) &&
         (capabilities >> kCapSysAdmin & 1) != 0 &&
         StatusOf(self, self, "Seccomp") == "0";
}

absl::StatusOr<std::vector<SeccompProgram>> ReadFilters(pid_t pid, pid_t tid,
                                                        Stops* stops) {
  absl::StatusOr<std::vector<SeccompProgram>> programs;
  // A thread of its own: when it ends the kernel frees whatever it still traces.
  std::thread tracer([&] {
    BeQuick();
    programs = ReadStopped(ThisArch(), pid, tid, stops);
  });
  tracer.join();
  return programs;
}

}  // namespace lull::inject
