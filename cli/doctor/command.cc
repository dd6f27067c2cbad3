#include "cli/doctor/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "cli/base/environment.h"
#include "cli/base/pipe.h"
#include "daemon/base/clock.h"
#include "daemon/base/status.h"

namespace lull {
namespace {

constexpr size_t kMaxOutput = 64 << 10;

[[noreturn]] void Exec(int out, char** argv, char** envp) {
  int null = open("/dev/null", O_RDWR);
  dup2(null, 0);
  dup2(out, 1);
  dup2(null, 2);
  CloseFrom(3);
  execvpe(argv[0], argv, envp);
  _exit(127);
}

// False when the time was over first.
bool ReadUntilEnd(int fd, absl::Time deadline, std::string* output) {
  char buffer[4096];
  for (;;) {
    auto left = absl::ToInt64Milliseconds(deadline - SteadyNow());
    if (left <= 0) return false;
    pollfd wait = {fd, POLLIN, 0};
    if (poll(&wait, 1, static_cast<int>(left)) <= 0) continue;
    ssize_t got = read(fd, buffer, sizeof(buffer));
    if (got <= 0) return true;
    size_t room = kMaxOutput - output->size();
    output->append(buffer, std::min(room, static_cast<size_t>(got)));
  }
}

}  // namespace

absl::StatusOr<CommandResult> RunCommand(std::vector<std::string> argv,
                                         std::vector<std::string> environment,
                                         absl::Duration timeout) {
  LULL_ASSIGN_OR_RETURN(Pipe pipe, MakePipe());
  std::vector<char*> arguments = Pointers(argv);
  std::vector<char*> variables = Pointers(environment);
  pid_t pid = fork();
  if (pid < 0) return ErrnoStatus(errno, "cannot start a process");
  if (pid == 0) Exec(pipe.write.get(), arguments.data(), variables.data());
  pipe.write.reset();
  CommandResult result;
  bool ended = ReadUntilEnd(pipe.read.get(), SteadyNow() + timeout, &result.output);
  if (!ended) kill(pid, SIGKILL);
  int status = 0;
  TEMP_FAILURE_RETRY(waitpid(pid, &status, 0));
  if (!ended) {
    return absl::DeadlineExceededError(
        absl::StrCat(argv[0], " did not end within ", absl::FormatDuration(timeout)));
  }
  result.exit_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

std::vector<std::string> FindPrograms(const std::vector<std::string>& names) {
  const std::string path = Variable("PATH");
  std::vector<std::string> found;
  std::set<std::string> seen;
  for (const std::string& name : names) {
    for (absl::string_view folder : absl::StrSplit(path, ':')) {
      std::string program = absl::StrCat(folder, "/", name);
      std::error_code error;
      std::string file = std::filesystem::canonical(program, error).string();
      if (error || access(program.c_str(), X_OK) != 0 || !seen.insert(file).second)
        continue;
      found.push_back(program);
    }
  }
  return found;
}

}  // namespace lull
