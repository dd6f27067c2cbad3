#include "daemon/relay/process/worker_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <vector>

#include "daemon/base/status.h"
#include "daemon/relay/process/keeper.h"
#include "daemon/relay/process/worker_main.h"

extern char** environ;

namespace lull::relay {
namespace {

bool IsFor(const char* entry, const char* variable) {
  size_t length = strlen(variable);
  return strncmp(entry, variable, length) == 0 && entry[length] == '=';
}

std::vector<char*> WorkerEnvironment() {
  static char disable[] = "LULL_DISABLE=1";
  std::vector<char*> result;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    if (!IsFor(*entry, "LD_PRELOAD") && !IsFor(*entry, "LULL_SOCKET") &&
        !IsFor(*entry, "LULL_DISABLE")) {
      result.push_back(*entry);
    }
  }
  result.push_back(disable);
  result.push_back(nullptr);
  return result;
}

// Between fork and exec: system calls only.
[[noreturn]] void BecomeWorker(int channel, int listener, char** arguments,
                               char** environment) {
  setsid();
  constexpr int kAbove = 16;  // so that neither is overwritten by the other
  int high_channel = fcntl(channel, F_DUPFD, kAbove);
  int high_listener = fcntl(listener, F_DUPFD, kAbove);
  if (dup2(high_channel, kChannelFd) < 0 || dup2(high_listener, kListenFd) < 0) {
    _exit(127);
  }
  syscall(SYS_close_range, kListenFd + 1, ~0u, 0);
  execve("/proc/self/exe", arguments, environment);
  _exit(127);
}

}  // namespace

absl::StatusOr<WorkerProcess> StartWorkerProcess(int listen_fd) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) !=
      0) {
    return ErrnoStatus(errno, "cannot make a channel to the relay worker");
  }
  WorkerProcess process;
  process.channel.reset(ends[0]);
  UniqueFd other(ends[1]);
  static char program[] = "lull";
  std::string verb = kWorkerVerb;
  char* arguments[] = {program, verb.data(), nullptr};
  std::vector<char*> environment = WorkerEnvironment();
  process.pid = fork();
  if (process.pid == 0) {
    BecomeWorker(other.get(), listen_fd, arguments, environment.data());
  }
  if (process.pid < 0) return ErrnoStatus(errno, "cannot start the relay worker");
  return process;
}

uint64_t WorkerCpuNs(pid_t pid) {
  clockid_t clock;
  timespec used;
  if (pid <= 0 || clock_getcpuclockid(pid, &clock) != 0 ||
      clock_gettime(clock, &used) != 0) {
    return 0;
  }
  return static_cast<uint64_t>(used.tv_sec) * 1'000'000'000 +
         static_cast<uint64_t>(used.tv_nsec);
}

void ReapWorkerProcess(pid_t pid, int patience_ms) {
  if (pid <= 0) return;
  UniqueFd pidfd(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  pollfd ended{pidfd.get(), POLLIN, 0};
  if (!pidfd || poll(&ended, 1, patience_ms) != 1) kill(pid, SIGKILL);
  TEMP_FAILURE_RETRY(waitpid(pid, nullptr, 0));
}

}  // namespace lull::relay
