#include "cli/base/terminal.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "cli/base/environment.h"
#include "cli/base/pipe.h"
#include "daemon/base/write_all.h"

namespace lull {
namespace {

constexpr int kNotFound = 127;  // of sh

struct Settings {
  std::string colour = "auto";
  bool no_pager = false;
};

Settings& Chosen() {
  static Settings settings;
  return settings;
}

// Knows no colours and no pages; also where nobody says what it is.
bool IsDumb() {
  std::string terminal = Variable("TERM");
  return terminal.empty() || terminal == "dumb";
}

size_t FromVariable(const char* name) {
  size_t value = 0;
  return absl::SimpleAtoi(Variable(name), &value) ? value : 0;
}

std::string Pager() {
  for (const char* name : {"LULL_PAGER", "PAGER"}) {
    if (getenv(name) != nullptr) return Variable(name);
  }
  return "less";
}

// Whether the lines of `text`, wrapped by the terminal, and a prompt have room.
bool Fits(absl::string_view text) {
  winsize size = {};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return true;
  size_t rows = size.ws_row > 0 ? size.ws_row : 24;
  size_t columns = std::max<size_t>(1, TerminalColumns(STDOUT_FILENO));
  size_t taken = 1;
  while (!text.empty()) {
    size_t end = std::min(text.find('\n'), text.size());
    taken += std::max<size_t>(1, (end + columns - 1) / columns);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return taken <= rows;
}

// Starts the pager, which reads from `input`. Its process id, or -1.
pid_t Start(std::string pager, int input) {
  std::vector<std::string> variables;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    variables.push_back(*variable);
  }
  if (getenv("LESS") == nullptr) variables.push_back("LESS=FRX");
  std::vector<char*> environment = Pointers(variables);
  std::string shell = "sh", option = "-c";
  char* arguments[] = {shell.data(), option.data(), pager.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_adddup2(&files, input, STDIN_FILENO);
  pid_t child = -1;
  int error =
      posix_spawn(&child, "/bin/sh", &files, nullptr, arguments, environment.data());
  posix_spawn_file_actions_destroy(&files);
  return error == 0 ? child : -1;
}

}  // namespace

void AddTerminalOptions(CLI::App* verb, bool answers) {
  verb->add_option("--color", Chosen().colour,
                   "colours; auto: on a terminal, unless $NO_COLOR is set")
      ->check(CLI::IsMember({"auto", "always", "never"}).description(""))
      ->type_name("auto|always|never")
      ->configurable();
  if (!answers) return;
  verb->add_flag("--no-pager", Chosen().no_pager,
                 "do not show a long answer in $LULL_PAGER, $PAGER or less")
      ->configurable();
}

bool UseColour(int fd) {
  if (Chosen().colour != "auto") return Chosen().colour == "always";
  return isatty(fd) == 1 && Variable("NO_COLOR").empty() && !IsDumb();
}

size_t TerminalColumns(int fd) {
  winsize size = {};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0) return 0;
  size_t wanted = FromVariable("COLUMNS");
  return wanted > 0 ? wanted : size.ws_col;
}

bool ShowInPager(absl::string_view text) {
  std::string pager = Pager();
  if (Chosen().no_pager || isatty(STDOUT_FILENO) != 1 || pager.empty() ||
      pager == "cat" || IsDumb() || Fits(text)) {
    return false;
  }
  absl::StatusOr<Pipe> pipe = MakePipe();
  if (!pipe.ok()) return false;
  pid_t child = Start(pager, pipe->read.get());
  pipe->read.reset();
  if (child < 0) return false;
  // Ctrl-C is the pager's, which goes on; and it may be left before all is read.
  auto interrupt = signal(SIGINT, SIG_IGN);
  auto quit = signal(SIGQUIT, SIG_IGN);
  auto broken = signal(SIGPIPE, SIG_IGN);
  WriteAll(pipe->write.get(), text).IgnoreError();  // EPIPE: the reader has enough
  pipe->write.reset();
  int status = 0;
  TEMP_FAILURE_RETRY(waitpid(child, &status, 0));
  signal(SIGINT, interrupt);
  signal(SIGQUIT, quit);
  signal(SIGPIPE, broken);
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace lull
