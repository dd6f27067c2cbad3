#include "tests/daemon/collector/lulld_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace lull::test {
namespace {

bool Listens(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  bool ok = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  return ok;
}

}  // namespace

LulldProcess::LulldProcess(const std::vector<std::string>& arguments) {
  const char* program = getenv("LULLD");
  if (program == nullptr) {
    ADD_FAILURE() << "$LULLD must name the executable";
    return;
  }
  int ends[2];
  if (pipe(ends) != 0) return;
  std::vector<char*> argv = {const_cast<char*>(program)};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  pid_ = vfork();
  if (pid_ == 0) {
    dup2(ends[1], 2);
    close(ends[0]);
    close(ends[1]);
    execv(program, argv.data());
    _exit(127);
  }
  close(ends[1]);
  error_pipe_ = ends[0];
}

LulldProcess::~LulldProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
    Wait();
  }
}

bool LulldProcess::AwaitSocket(const std::string& path) {
  for (int i = 0; i < 2000; ++i) {
    if (Listens(path)) return true;
    siginfo_t info = {};
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) ==
            0 &&
        info.si_pid == pid_) {
      return false;
    }
    usleep(5000);
  }
  return false;
}

void LulldProcess::Signal(int signal) { kill(pid_, signal); }

int LulldProcess::Wait() {
  char buffer[1024];
  for (ssize_t n; (n = read(error_pipe_, buffer, sizeof(buffer))) > 0;) {
    errors_.append(buffer, static_cast<size_t>(n));
  }
  close(error_pipe_);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

}  // namespace lull::test
