#include "cli/job/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "cli/base/environment.h"
#include "cli/base/pipe.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"
#include "daemon/procfs/procfs.h"
#include "daemon/procfs/stat.h"

namespace lull {
namespace {

// A machine so busy that a sleeping process does not run for this long is not
// waited for any longer.
constexpr absl::Duration kPatience = absl::Seconds(1);

[[noreturn]] void Watch(int out, pid_t parent) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
  prctl(PR_SET_NAME, "lull-witness");
  dup2(out, 0);
  CloseFrom(1);  // keeps neither a pipe of the job nor its terminal open
  for (;;) {
    int signal = sigwaitinfo(&all, nullptr);
    unsigned char byte = static_cast<unsigned char>(signal);
    if (signal > 0) (void)!write(0, &byte, 1);
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<Witness>> Witness::Fork() {
  LULL_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  fcntl(pipe.read.get(), F_SETFL, O_NONBLOCK);
  fcntl(pipe.write.get(), F_SETFL, O_NONBLOCK);
  // Blocked across the fork: what the terminal sends now must not end the child
  // before it can note it.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  std::unique_ptr<Witness> witness(new Witness);
  pid_t parent = getpid();
  witness->pid_ = fork();
  if (witness->pid_ == 0) Watch(pipe.write.get(), parent);
  int error = errno;
  sigprocmask(SIG_SETMASK, &before, nullptr);
  if (witness->pid_ < 0) return ErrnoStatus(error, "cannot start a process");
  witness->seen_.fill(absl::InfinitePast());
  witness->seen_pipe_ = std::move(pipe.read);
  return witness;
}

Witness::~Witness() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  int status;
  TEMP_FAILURE_RETRY(waitpid(pid_, &status, 0));
}

void Witness::Drain() {
  unsigned char signals[64];
  ssize_t count;
  while ((count = read(seen_pipe_.get(), signals, sizeof(signals))) > 0) {
    absl::Time now = SteadyNow();
    for (ssize_t i = 0; i < count; ++i) {
      if (signals[i] < seen_.size()) seen_[signals[i]] = now;
    }
  }
}

bool Witness::SawLately(int signal, absl::Time received) const {
  return seen_[static_cast<size_t>(signal)] >= received - kGrace;
}

bool Witness::HasNothingToSay(int signal) const {
  std::string status = Procfs().Read(pid_, "status").text;
  if (status.empty()) return true;  // gone: nobody to wait for
  bool sleeps = absl::StartsWith(StatusField(status, "State"), "S");
  uint64_t pending = 0;
  for (absl::string_view name : {"ShdPnd", "SigPnd"}) {
    uint64_t set = 0;
    if (absl::SimpleHexAtoi(StatusField(status, name), &set)) pending |= set;
  }
  return sleeps && (pending >> (signal - 1) & 1) == 0;
}

bool Witness::Saw(int signal) {
  absl::Time received = SteadyNow();
  for (;;) {
    Drain();
    if (SawLately(signal, received)) return true;
    absl::Duration waited = SteadyNow() - received;
    if (waited >= kPatience) return false;
    if (waited >= kGrace && HasNothingToSay(signal)) {
      Drain();  // what it wrote before it fell asleep
      return SawLately(signal, received);
    }
    pollfd wait = {seen_pipe_.get(), POLLIN, 0};
    poll(&wait, 1, 2);
  }
}

}  // namespace lull
