#include "daemon/attach/inject/sleep.h"

#include <algorithm>
#include <array>

#include "absl/strings/numbers.h"
#include "daemon/base/clock.h"

namespace lull::inject {

namespace {

// How late the timer of a wait may be (the kernel's select_estimate_accuracy), and 100
// microseconds for what the scheduler's clock may be off.
absl::Duration Slack(absl::Duration limit) {
  return std::min(limit / 200, absl::Milliseconds(100)) + absl::Microseconds(100);
}

}  // namespace

Sleep::Sleep(const Arch& arch, pid_t pid, pid_t tid)
    : arch_(arch),
      pid_(pid),
      tid_(tid),
      times_asleep_(TimesAsleep()),
      asleep_(SleepingIn(pid, tid)) {
  if (!asleep_) return;
  auto limit = arch.ForgottenLimit(asleep_->call, asleep_->arguments);
  if (!limit) return;
  std::optional<absl::Duration> asleep = AsleepFor(pid, tid);
  const absl::Time now = SteadyNow();
  // That took a while. A thread that runs now may be on its way into another wait; and
  // of one whose time is over, that wait says so: what says EINTR is the next.
  asleep_ = SleepingIn(pid, tid);
  if (asleep && asleep_ && *asleep < *limit + Slack(*limit)) since_ = now - *asleep;
}

std::string Sleep::TimesAsleep() const {
  return StatusOf(pid_, tid_, "voluntary_ctxt_switches");
}

void Sleep::Stopped(Registers* registers) {
  int64_t before = 0;
  int64_t now = 0;
  until_stopped_ = absl::SimpleAtoi(times_asleep_, &before) &&
                   absl::SimpleAtoi(TimesAsleep(), &now) &&
                   now == before + 1;  // the stop itself
  std::optional<Slept> slept;
  if (asleep_) {
    slept = Slept{asleep_->call, asleep_->arguments, asleep_->sp, asleep_->pc,
                  until_stopped_};
  }
  std::array<char, 8> code = {};
  const uint64_t pc = arch_.Where(*registers).pc;
  const bool readable = ReadMemory(pid_, pc - 4, code.data(), code.size());
  arch_.Recall(registers, {code.data(), readable ? code.size() : 0}, slept);
}

absl::Duration Sleep::Passed() const {
  if (!until_stopped_) return absl::ZeroDuration();
  return std::max(SteadyNow() - since_, absl::ZeroDuration());
}

}  // namespace lull::inject
