#include "cli/job/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "daemon/base/status.h"

namespace lull {
namespace {

constexpr int kTickMs = 1000;

// All that can be caught, apart from what the kernel raises for a fault of lull itself.
sigset_t TakenSignals() {
  sigset_t set;
  sigfillset(&set);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) {
    sigdelset(&set, own);
  }
  return set;
}

// A limit or a timer of lull's own process, or its own write to where nobody reads or
// where the file may not grow: not the job's, which has its own. Batch systems send
// SIGXCPU as a warning, too.
bool IsOfLullItself(const signalfd_siginfo& info) {
  if (static_cast<pid_t>(info.ssi_pid) == getpid()) return true;
  if (info.ssi_code != SI_KERNEL) return false;
  return info.ssi_signo == SIGXCPU || info.ssi_signo == SIGPROF ||
         info.ssi_signo == SIGVTALRM;
}

// Whether the shell waits for this process group on its terminal.
bool InForeground() {
  UniqueFd terminal(open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY));
  return terminal && tcgetpgrp(terminal.get()) == getpgrp();
}

int g_exit_status;

void ExitNow(int) { _exit(g_exit_status); }

}  // namespace

absl::StatusOr<std::unique_ptr<Supervisor>> Supervisor::TakeSignals(
    std::unique_ptr<Witness> witness) {
  std::unique_ptr<Supervisor> supervisor(new Supervisor);
  supervisor->witness_ = std::move(witness);
  sigset_t taken = TakenSignals();
  supervisor->signals_.reset(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!supervisor->signals_) return ErrnoStatus(errno, "cannot take signals");
  // An inherited SIG_IGN would reap the job behind our back.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigprocmask(SIG_SETMASK, &taken, nullptr);
  return supervisor;
}

int Supervisor::Run(pid_t job, int fd, absl::FunctionRef<void()> poll_other) {
  for (;;) {
    int status = 0;
    pid_t changed = waitpid(job, &status, WNOHANG | WUNTRACED);
    if (changed == job && WIFEXITED(status)) return WEXITSTATUS(status);
    if (changed == job && WIFSIGNALED(status)) return 128 + WTERMSIG(status);
    if (changed == job && WIFSTOPPED(status)) StopWith(WSTOPSIG(status));
    pollfd wait[] = {
        {signals_.get(), POLLIN, 0}, {witness_->fd(), POLLIN, 0}, {fd, POLLIN, 0}};
    poll(wait, 3, kTickMs);
    HandleSignals(job);
    witness_->Drain();
    poll_other();
  }
}

void Supervisor::HandleSignals(pid_t job) {
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
    if (info.ssi_signo == SIGCHLD) continue;  // Run() looks for itself
    if (!IsOfLullItself(info)) Forward(job, info);
  }
}

void Supervisor::Forward(pid_t job, const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (witness_->Saw(signal)) return;
  pid_t to = job;
  if (static_cast<pid_t>(info.ssi_pid) == job && info.ssi_code <= 0) {
    // The job means its parent, and takes that to be whoever started lull.
    to = getppid();
    if (to <= 1) return;
  }
  if (info.ssi_code == SI_QUEUE) {
    sigval queued;  // a pointer may be more than the number that it holds
    queued.sival_ptr = reinterpret_cast<void*>(info.ssi_ptr);
    sigqueue(to, signal, queued);
  } else {
    kill(to, signal);
  }
}

// The job has stopped: so must we, or a shell would not know and keep the terminal
// from the user. Who stopped the job alone, behind the shell's back, will continue
// it alone: then lull goes on.
void Supervisor::StopWith(int signal) {
  if (InForeground() || witness_->Saw(signal)) kill(getpid(), SIGSTOP);
}

void Supervisor::EndWith(int exit_status) {
  // What was meant for the job while it ended is not meant for us.
  signalfd_siginfo info;
  while (read(signals_.get(), &info, sizeof(info)) == sizeof(info)) {
  }
  g_exit_status = exit_status;
  struct sigaction action = {};
  action.sa_handler = ExitNow;
  sigset_t unblock;
  sigemptyset(&unblock);
  for (int ending : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    sigaction(ending, &action, nullptr);
    sigaddset(&unblock, ending);
  }
  for (int stopping : {SIGTSTP, SIGCONT}) sigaddset(&unblock, stopping);
  sigprocmask(SIG_UNBLOCK, &unblock, nullptr);
}

}  // namespace lull
