#include "daemon/attach/inject/sleep.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "daemon/base/clock.h"

namespace lull::inject {

Sleep::Sleep(const Arch& arch, pid_t pid, pid_t tid)
    : pid_(pid),
      tid_(tid),
      times_asleep_(TimesAsleep()),
      asleep_(SleepingIn(pid, tid)) {
  if (!asleep_ || !arch.ForgetsTime(asleep_->call, asleep_->arguments)) return;
  std::optional<absl::Duration> asleep = AsleepFor(pid, tid);
  if (asleep) since_ = SteadyNow() - *asleep;
}

std::string Sleep::TimesAsleep() const {
  return StatusOf(pid_, tid_, "voluntary_ctxt_switches");
}

void Sleep::Stopped() {
  int64_t before = 0;
  int64_t now = 0;
  until_stopped_ = absl::SimpleAtoi(times_asleep_, &before) &&
                   absl::SimpleAtoi(TimesAsleep(), &now) &&
                   now == before + 1;  // the stop itself
}

std::optional<Slept> Sleep::slept() const {
  if (!asleep_) return std::nullopt;
  return Slept{asleep_->call, asleep_->arguments, asleep_->sp, asleep_->pc,
               until_stopped_};
}

absl::Duration Sleep::Passed() const {
  if (!until_stopped_) return absl::ZeroDuration();
  return std::max(SteadyNow() - since_, absl::ZeroDuration());
}

}  // namespace lull::inject
