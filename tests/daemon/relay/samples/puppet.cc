#include "tests/daemon/relay/samples/puppet.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/relay/samples/memory.h"
#include "preload/stacks/layouts/cpython_3_10.h"
#include "preload/stacks/layouts/cpython_3_11.h"
#include "preload/stacks/layouts/cpython_3_12.h"
#include "preload/stacks/layouts/cpython_3_8.h"
#include "preload/stacks/layouts/cpython_3_9.h"
#include "preload/stacks/layouts/debug_offsets.h"

namespace lull::relay {
namespace {

std::vector<int> AllowedProcessors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<int> allowed;
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return allowed;
  for (int i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &set)) allowed.push_back(i);
  }
  return allowed;
}

// To the first or the second of the processors that this process began with.
void GoTo(int which) {
  static const std::vector<int> allowed = AllowedProcessors();
  if (allowed.size() < 2) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(allowed[static_cast<size_t>(which)], &set);
  sched_setaffinity(0, sizeof(set), &set);
}

std::optional<abi::PythonLayout> LayoutOf(int minor, pid_t pid, uint64_t runtime) {
  switch (minor) {
    case 8:
      return kCPython38;
    case 9:
      return kCPython39;
    case 10:
      return kCPython310;
    case 11:
      return kCPython311;
    case 12:
      return kCPython312;
    default:
      break;
  }
  std::string table(4096, 0);
  TargetMemory memory(pid, nullptr);
  CPythonLayout layout;
  if (!memory.Read(runtime, table.data(), 4096) ||
      !layout_from_debug_offsets(table.data(), &layout)) {
    return std::nullopt;
  }
  return layout;
}

}  // namespace

Puppet::Puppet(const std::string& interpreter, const std::string& scenario,
               double seconds) {
  const std::string lasts = absl::StrCat(seconds);
  GoTo(0);  // before the fork, which allocates nothing then
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) return;
  pid_ = fork();
  if (pid_ == 0) {
    GoTo(1);
    dup2(in[0], STDIN_FILENO);
    dup2(out[1], STDOUT_FILENO);
    execl(interpreter.c_str(), interpreter.c_str(), LULL_PUPPETS "/flutter.py",
          scenario.c_str(), lasts.c_str(), nullptr);
    _exit(127);
  }
  close(in[0]);
  close(out[1]);
  input_.reset(in[1]);
  FILE* said = fdopen(out[0], "r");
  unsigned long pid = 0, state = 0, thread = 0, type = 0, runtime = 0;
  unsigned long totals = 0;
  int minor = 0;
  if (fscanf(said, "%lu %lu %lu %lu %lu %d %lu", &pid, &state, &thread, &type, &runtime,
             &minor, &totals) == 7) {
    totals_ = totals;
    state_ = state;
    thread_ = thread;
    if (auto layout = LayoutOf(minor, pid_, runtime)) {
      layout_ = FrameLayout::Of(*layout, type);
    }
  }
  fclose(said);
}

std::array<double, 3> Puppet::Totals() const {
  std::array<double, 3> totals{};
  TargetMemory(pid_, nullptr).Read(totals_, totals.data(), sizeof(totals));
  return totals;
}

Puppet::~Puppet() {
  if (pid_ <= 0) return;
  kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

}  // namespace lull::relay
