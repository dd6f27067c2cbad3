// One thread under ptrace. Every wait has a deadline.
//
// All calls come from the thread that seized it. When that thread ends the kernel
// lets its tracees go: the last safety net, also for a SIGKILL.
#pragma once

#include <sys/types.h>
#include <time.h>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/inject.h"

namespace lull::inject {

enum class Stop {
  kAsked,     // by Interrupt(), in front of the return to its own code
  kGroup,     // job control
  kSyscall,   // at the entry or the exit of a system call
  kSignal,    // a signal is about to be delivered
  kGone,      // the thread has ended
  kDeadline,  // it still runs
};

// Of the calling thread, which is to stop others.
void BeQuick();

// How a thread was kept from running until now, since `begin`. `waited`: its RunDelay()
// when it had stopped.
Held HeldSince(absl::Time begin, absl::Duration waited, pid_t pid, pid_t tid);

// Ends the blocking system calls of its thread now and then with EINTR, so that a
// wait can look at the time. Uses SIGRTMAX - 1, in our own process.
class Ticker {
 public:
  Ticker();
  ~Ticker();
  Ticker(const Ticker&) = delete;
  Ticker& operator=(const Ticker&) = delete;
  bool running() const { return running_; }

 private:
  timer_t timer_ = {};
  bool running_ = false;
};

class Tracee {
 public:
  Tracee(pid_t pid, pid_t tid, const Arch& arch) : pid_(pid), tid_(tid), arch_(arch) {}
  ~Tracee();  // lets go
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  absl::Status Seize();
  absl::Status Interrupt();
  Stop Wait(absl::Time deadline);
  // With the signal that was about to be delivered, if it is stopped at one.
  absl::Status Continue();
  absl::Status ContinueToSyscall();
  // As before, and untraced; a signal on its way goes on.
  absl::Status LetGo();
  // The last moment before its stop at which it was not stopped yet.
  absl::Time last_seen_running() const { return last_seen_running_; }
  // Of the last stop by kSignal.
  int signal() const { return signal_; }
  void DropSignal() { signal_ = 0; }

  absl::Status GetRegisters(Registers* registers) const;
  absl::Status SetRegisters(const Registers& registers) const;
  absl::Status GetState(ThreadState* state) const;
  absl::Status SetVector(const VectorState& vector) const;
  absl::Status SetSignalMask(uint64_t mask) const;
  // Whether `pc` is inside of a restartable sequence (rseq), which the kernel would
  // have aborted had it been interrupted by anything but us.
  bool InRestartableSequence(uint64_t pc) const;
  // Makes a stack grow down to `address` as a fault of its own would.
  absl::Status GrowStack(uint64_t address) const;

  pid_t pid() const { return pid_; }
  pid_t tid() const { return tid_; }

 private:
  Stop OnStop(int status);
  absl::Status Resume(int request);
  absl::Status Problem(const char* what) const;

  const pid_t pid_;
  const pid_t tid_;
  const Arch& arch_;
  bool seized_ = false;
  Ticker ticker_;
  bool stopped_ = false;
  bool was_stopped_ = false;  // ever
  int signal_ = 0;
  absl::Time last_seen_running_;
};

}  // namespace lull::inject
