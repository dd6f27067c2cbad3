#include "cli/client/private_collector.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "cli/base/environment.h"
#include "cli/client/install.h"
#include "cli/client/places.h"
#include "daemon/base/clock.h"
#include "daemon/base/runtime_directory.h"
#include "daemon/base/status.h"
#include "daemon/base/unique_fd.h"

namespace lull {
namespace {

constexpr absl::Duration kPollInterval = absl::Milliseconds(10);
// One that is about to end of idleness still holds the store for a moment.
constexpr int kAttempts = 3;
// One whose socket was removed holds it, too, and makes the socket anew if it can take
// its lock between two attempts.
constexpr int kAttemptsInUse = 10;
constexpr char kInUse[] = "another lulld";  // as it says then
constexpr absl::Duration kBetweenAttempts = absl::Milliseconds(150);
constexpr off_t kMaxLogBytes = 1 << 20;
constexpr size_t kMaxShownLog = 2000;

// Waits for the lock that the one who starts the collector holds.
absl::StatusOr<UniqueFd> Lock(const std::string& path, absl::Time deadline) {
  UniqueFd fd(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot open ", path));
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) return ErrnoStatus(errno, path);
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("another lull holds ", path, " and does not finish"));
    }
    absl::SleepFor(kPollInterval);
  }
  return fd;
}

absl::StatusOr<UniqueFd> OpenLog(const std::string& path) {
  UniqueFd fd(
      open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return ErrnoStatus(errno, absl::StrCat("cannot write ", path));
  struct stat info;
  if (fstat(fd.get(), &info) == 0 && info.st_size > kMaxLogBytes &&
      ftruncate(fd.get(), 0) != 0) {
    return ErrnoStatus(errno, absl::StrCat("cannot shorten ", path));
  }
  return fd;
}

// What the collector wrote since `start`, in one line per line.
std::string LogSince(int fd, off_t start) {
  std::string text(kMaxShownLog, '\0');
  ssize_t size = pread(fd, text.data(), text.size(), start);
  text.resize(size > 0 ? static_cast<size_t>(size) : 0);
  return std::string(absl::StripTrailingAsciiWhitespace(text));
}

// Starts `program` in a session of its own, so that no signal of the terminal
// reaches it, with the log as its stdout and stderr. Only async-signal-safe calls
// between fork and exec.
pid_t Spawn(const std::string& program, const std::vector<std::string>& arguments,
            int log) {
  std::vector<char*> argv = {const_cast<char*>(program.c_str())};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  std::vector<std::string> environment = EnvironmentWithoutShim();
  std::vector<char*> envp = Pointers(environment);
  pid_t pid = fork();
  if (pid != 0) return pid;
  setsid();
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int signal : {SIGHUP, SIGINT, SIGTERM, SIGQUIT, SIGPIPE, SIGCHLD}) {
    ::signal(signal, SIG_DFL);
  }
  int null = open("/dev/null", O_RDONLY);
  dup2(null, 0);
  dup2(log, 1);
  dup2(log, 2);
  CloseFrom(3);
  if (chdir("/") != 0) _exit(126);
  execve(argv[0], argv.data(), envp.data());
  _exit(127);
}

absl::Status Start(absl::string_view runtime, const std::string& socket,
                   absl::Time deadline) {
  LULL_ASSIGN_OR_RETURN(std::string program, FindCollectorProgram());
  LULL_RETURN_IF_ERROR(PrepareDataDirectory());
  std::string log_path = absl::StrCat(runtime, "/collector.log");
  LULL_ASSIGN_OR_RETURN(UniqueFd log, OpenLog(log_path));
  off_t start = lseek(log.get(), 0, SEEK_END);
  pid_t pid = Spawn(program,
                    {"--private", "--listen", absl::StrCat("unix:", socket),
                     "--database", DatabasePath()},
                    log.get());
  if (pid < 0) return ErrnoStatus(errno, "cannot start the collector");
  while (!AcceptsConnections(socket)) {
    int status = 0;
    if (waitpid(pid, &status, WNOHANG) == pid) {
      std::string said = LogSince(log.get(), start);
      return absl::UnavailableError(absl::StrCat(
          "the collector ", program, " ended at its start",
          said.empty() ? "" : ", saying:\n", said, "\n(log: ", log_path, ")"));
    }
    if (SteadyNow() > deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("the collector ", program, " (pid ", pid,
                       ") does not listen on ", socket, "; its log: ", log_path));
    }
    absl::SleepFor(kPollInterval);
  }
  return absl::OkStatus();
}

}  // namespace

bool AcceptsConnections(const std::string& path) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) return false;
  memcpy(address.sun_path, path.c_str(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return fd &&
         connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0;
}

absl::Status EnsurePrivateCollector(absl::string_view runtime, absl::Duration timeout) {
  std::string socket = CollectorSocketPath(runtime);
  if (AcceptsConnections(socket)) return absl::OkStatus();
  absl::Time deadline = SteadyNow() + timeout;
  LULL_RETURN_IF_ERROR(MakePrivateDirectory(std::string(runtime)));
  LULL_ASSIGN_OR_RETURN(UniqueFd lock,
                        Lock(absl::StrCat(runtime, "/collector.lock"), deadline));
  absl::Status started;
  int attempts = kAttempts;
  for (int attempt = 0; attempt < attempts; ++attempt) {
    if (attempt > 0) absl::SleepFor(kBetweenAttempts);
    if (AcceptsConnections(socket)) return absl::OkStatus();
    started = Start(runtime, socket, deadline);
    if (!absl::IsUnavailable(started)) break;
    if (absl::StrContains(started.message(), kInUse)) attempts = kAttemptsInUse;
  }
  return started;
}

}  // namespace lull
