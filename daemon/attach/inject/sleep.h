// What a thread slept in just before it was stopped, and how long.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "daemon/attach/inject/arch.h"
#include "daemon/attach/inject/proc.h"

namespace lull::inject {

class Sleep {
 public:
  // Looks at a thread that is stopped next, at once.
  Sleep(const Arch& arch, pid_t pid, pid_t tid);
  // It is stopped, and has these registers: completes them (Arch::Recall). Reading them
  // was a ptrace request, as it has to be: before the first one the thread need not
  // have gone to sleep yet.
  void Stopped(Registers* registers);

  // How much of its wait is over, if the kernel forgets that (Arch::ForgottenLimit);
  // zero for other waits, and for one that began after the look: the time of the wait
  // before would be taken from it, and it would end early. What remains: a thread that
  // wakes within the microseconds between look and stop, and is stopped on its way into
  // the next wait, before it sleeps there.
  absl::Duration Passed() const;

 private:
  std::string TimesAsleep() const;  // as /proc writes it

  const Arch& arch_;
  const pid_t pid_;
  const pid_t tid_;
  // Read first: of a thread that has begun another wait meanwhile the count tells.
  const std::string times_asleep_;
  std::optional<Sleeping> asleep_;  // nullopt: it runs, or may not be read
  absl::Time since_ = absl::InfiniteFuture();
  bool until_stopped_ = false;
};

}  // namespace lull::inject
