#include "tests/daemon/attach/inject/victim_process.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"

namespace lull::inject {

std::string Built(const std::string& name) {
  return absl::StrCat(LULL_INJECT_TEST_FOLDER, "/", name);
}

VictimProcess::VictimProcess(const std::string& kind, int threads,
                             const std::vector<std::string>& environment) {
  char path[] = "/tmp/lull_victim_XXXXXX";
  close(mkstemp(path));
  path_ = path;
  page_ = MapSharedPage(path);
  Start({Built("inject_victim"), kind, path, absl::StrCat(threads),
         Built("libinject_other.so")},
        environment);
  while (page_->ready == 0 && IsAlive()) absl::SleepFor(absl::Milliseconds(2));
  absl::SleepFor(absl::Milliseconds(30));  // into what it does
}

VictimProcess::VictimProcess(const std::vector<std::string>& command) {
  Start(command, {});
  absl::SleepFor(absl::Milliseconds(300));
}

void VictimProcess::Start(const std::vector<std::string>& command,
                          const std::vector<std::string>& environment) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (const std::string& entry : environment) {
    putenv(const_cast<char*>(entry.c_str()));
  }
  execvp(arguments[0], arguments.data());
  _exit(127);
}

VictimProcess::~VictimProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (page_ != nullptr) munmap(page_, 4096);
  if (!path_.empty()) unlink(path_.c_str());
}

bool VictimProcess::IsAlive() const {
  siginfo_t info = {};
  return waitid(P_PID, pid_, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

int VictimProcess::End() {
  if (page_ != nullptr) page_->stop = 1;
  for (int i = 0; i < 1000; ++i) {
    int status = 0;
    if (waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return status;
    }
    absl::SleepFor(absl::Milliseconds(10));
  }
  return -1;
}

Request ProbeRequest(pid_t pid) {
  Request request;
  request.pid = pid;
  request.library = request.identity = Built("libinject_probe.so");
  request.function = "probe";
  request.argument = "abc";
  return request;
}

absl::StatusOr<Outcome> Inject(const Request& request, Stops* stops) {
  std::atomic<bool> cancel = false;
  Injector injector;
  auto outcome = injector.Call(request, cancel);
  if (stops != nullptr) *stops = injector.stops();
  return outcome;
}

void Report(const std::string& what, std::vector<absl::Duration> pauses) {
  if (pauses.empty()) return;
  std::sort(pauses.begin(), pauses.end());
  printf("pause %-32s median %8.3f ms, worst %8.3f ms (%zu)\n", what.c_str(),
         absl::ToDoubleMilliseconds(pauses[pauses.size() / 2]),
         absl::ToDoubleMilliseconds(pauses.back()), pauses.size());
}

}  // namespace lull::inject
