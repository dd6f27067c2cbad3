#include "cli/job/supervisor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "daemon/base/status.h"

namespace lull {
namespace {

constexpr int kTickMs = 1000;

// All that can be caught, apart from what the kernel raises for a fault or a limit
// of lull itself, which must not reach the job.
sigset_t TakenSignals() {
  sigset_t set;
  sigfillset(&set);
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGPIPE, SIGXCPU,
                  SIGXFSZ, SIGPROF, SIGVTALRM}) {
    sigdelset(&set, own);
  }
  return set;
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
  // An inherited SIG_IGN would reap the job behind our back.
  signal(SIGCHLD, SIG_DFL);
  signal(SIGPIPE, SIG_IGN);
  sigset_t taken = TakenSignals();
  if (sigprocmask(SIG_SETMASK, &taken, nullptr) != 0) {
    return ErrnoStatus(errno, "cannot block signals");
  }
  supervisor->signals_.reset(signalfd(-1, &taken, SFD_NONBLOCK | SFD_CLOEXEC));
  if (!supervisor->signals_) return ErrnoStatus(errno, "cannot take signals");
  return supervisor;
}

int Supervisor::Run(pid_t job, int fd, const std::function<void()>& poll_other) {
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
    int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;  // Run() looks for itself
    Forward(job, signal, info.ssi_code, static_cast<pid_t>(info.ssi_pid), info.ssi_int);
  }
}

void Supervisor::Forward(pid_t job, int signal, int code, pid_t sender, int value) {
  if (witness_->Saw(signal)) return;
  pid_t to = job;
  if (sender == job && code <= 0) {
    // The job means its parent, and takes that to be whoever started lull.
    to = getppid();
    if (to <= 1) return;
  }
  if (code == SI_QUEUE) {
    sigval queued;
    queued.sival_int = value;
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
