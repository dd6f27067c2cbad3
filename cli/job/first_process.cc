#include "cli/job/first_process.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lull {
namespace {

// Ends the entries of all that have ended. Returns when `lull` is not among them.
void Reap(pid_t lull) {
  int status = 0;
  for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
    if (ended != lull) continue;
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
  }
}

// What a terminal or the kernel sends goes to the whole process group, lull included.
void PassOn(const siginfo_t& info, pid_t lull) {
  if (info.si_code == SI_QUEUE) {
    sigqueue(lull, info.si_signo, info.si_value);
  } else if (info.si_code != SI_KERNEL) {
    kill(lull, info.si_signo);
  }
}

[[noreturn]] void StayBehind(pid_t lull, const sigset_t& all) {
  prctl(PR_SET_NAME, "lull-init");
  for (;;) {
    siginfo_t info;
    const int signal = sigwaitinfo(&all, &info);
    if (signal > 0 && signal != SIGCHLD) PassOn(info, lull);
    Reap(lull);  // one SIGCHLD may stand for many
  }
}

}  // namespace

void LeaveFirstProcessBehind() {
  if (getpid() != 1) return;
  sigset_t all, before;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, &before);
  // Ignored, it would end the entries and keep their exit status from us.
  struct sigaction by_default = {}, inherited = {};
  by_default.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &by_default, &inherited);
  const pid_t lull = fork();
  if (lull > 0) StayBehind(lull, all);
  sigaction(SIGCHLD, &inherited, nullptr);
  sigprocmask(SIG_SETMASK, &before, nullptr);
}

}  // namespace lull
