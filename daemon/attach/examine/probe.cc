#include "daemon/attach/examine/probe.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lull::attach {

// A tracer could only let go of a target that is stopped, so it has to end instead; and
// once it is reaped, the target is surely without a tracer.
int ProbePtrace(pid_t pid) {
  pid_t child = fork();
  if (child < 0) return EAGAIN;
  if (child == 0) {
    long result = ptrace(PTRACE_SEIZE, pid, nullptr, nullptr);
    _exit(result == 0 ? 0 : errno);
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return EAGAIN;
  }
  // Killed: by a seccomp filter that does not merely refuse.
  return WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

}  // namespace lull::attach
