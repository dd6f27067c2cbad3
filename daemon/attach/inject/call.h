// Calls on a stopped thread: the stack that they need, the run to their return, and
// the way back. At each instant in between, a thread that loses its tracer finishes
// the call at hand and restores itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/tracee.h"

namespace lull::inject {

class Call {
 public:
  // `thread` is stopped (Stop::kAsked) and lives longer than this.
  // `passed`: of the wait that it was in.
  Call(const Arch& arch, Tracee* thread, uint64_t trampoline, uint64_t errno_offset,
       absl::Duration passed)
      : arch_(arch),
        thread_(*thread),
        trampoline_(trampoline),
        errno_offset_(errno_offset),
        passed_(passed) {}

  // Writes texts and frame to the stack. The thread is as it was until Run().
  // `registers`: its own.
  absl::Status Prepare(const Registers& registers, std::string_view library,
                       std::string_view argument);

  // dlopen(library, flags), and function(argument, size, &result). Back in here when
  // it has returned. After an error the thread has been given back, has ended, or
  // goes on by itself.
  absl::Status Load(uint64_t dlopen, uint64_t flags);
  absl::Status Invoke(uint64_t function, int64_t* result);

  // Restores everything and lets the thread go.
  absl::Status GiveBack();

  // What the target's loader was last refused by the kernel; "" when nothing.
  std::string Refusal() const;

 private:
  absl::Status Run(uint64_t function, const std::array<uint64_t, 3>& arguments);
  absl::Status RunToReturn();
  absl::Status StayBefore(const Registers& registers);
  absl::Status OnSignal();
  absl::Status OnDeadline();
  absl::Status StopOnTheWay();
  absl::Status Restore(const Registers& registers);

  const Arch& arch_;
  Tracee& thread_;
  const uint64_t trampoline_;
  const uint64_t errno_offset_;  // from the thread pointer; 0: not known
  const absl::Duration passed_;
  ThreadState state_;
  Frame frame_;
  uint64_t library_at_ = 0;
  uint64_t argument_at_ = 0;
  uint64_t argument_size_ = 0;
  uint64_t result_at_ = 0;
  uint64_t errno_at_ = 0;
  int32_t errno_ = 0;
  bool running_ = false;    // registers are those of a call
  bool time_lost_ = false;  // see Arch::GivenBack
  int64_t refused_call_ = -1;
  int refused_error_ = 0;
};

}  // namespace lull::inject
