#include "cli/job/launchpad.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <utility>

#include "cli/base/environment.h"
#include "cli/base/pipe.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

constexpr int kNeverStarted = 125;

constexpr char kRecorded = 'r';
constexpr char kAsItIs = 'a';

// Whoever started lull may have asked for this of the process that becomes the job.
int ParentDeathSignal() {
  int signal = 0;
  return prctl(PR_GET_PDEATHSIG, &signal) == 0 ? signal : 0;
}

void DieWith(pid_t parent, int signal) {
  prctl(PR_SET_PDEATHSIG, signal);
  if (getppid() != parent) kill(getpid(), signal);
}

[[noreturn]] void WaitAndExec(int go, int failed, char** argv, char** envp) {
  char byte;
  if (TEMP_FAILURE_RETRY(read(go, &byte, 1)) != 1) _exit(kNeverStarted);
  execvpe(argv[0], argv, byte == kRecorded ? envp : environ);
  int error = errno;
  (void)!write(failed, &error, sizeof(error));
  _exit(ExecFailureStatus(error));
}

}  // namespace

int ExecFailureStatus(int error) { return error == ENOENT ? 127 : 126; }

absl::StatusOr<Launchpad> Launchpad::Fork(std::vector<std::string> argv,
                                          std::vector<std::string> environment) {
  LULL_ASSIGN_OR_RETURN(Pipe go, MakePipe());
  LULL_ASSIGN_OR_RETURN(Pipe failed, MakePipe());
  std::vector<char*> arguments = Pointers(argv);
  std::vector<char*> variables = Pointers(environment);
  Launchpad launchpad;
  const int death_signal = ParentDeathSignal();
  const pid_t parent = getpid();
  launchpad.pid_ = fork();
  if (launchpad.pid_ < 0) return ErrnoStatus(errno, "cannot start a process");
  if (launchpad.pid_ == 0) {
    go.write.reset();  // or its own copy would keep the pipe open
    failed.read.reset();
    if (death_signal != 0) DieWith(parent, death_signal);
    WaitAndExec(go.read.get(), failed.write.get(), arguments.data(), variables.data());
  }
  launchpad.go_ = std::move(go.write);
  launchpad.failed_ = std::move(failed.read);
  return launchpad;
}

void Launchpad::Go(bool recorded) {
  // SIGPIPE is ignored by now: a process that a signal ended does not end us.
  (void)!write(go_.get(), recorded ? &kRecorded : &kAsItIs, 1);
  go_.reset();
}

int Launchpad::ExecError() {
  int error = 0;
  const ssize_t got = TEMP_FAILURE_RETRY(read(failed_.get(), &error, sizeof(error)));
  failed_.reset();
  return got == sizeof(error) ? error : 0;
}

void Launchpad::Cancel() {
  go_.reset();
  failed_.reset();
  int status;
  TEMP_FAILURE_RETRY(waitpid(pid_, &status, 0));
}

}  // namespace lull
