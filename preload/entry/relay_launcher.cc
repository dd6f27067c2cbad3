#include "preload/entry/relay_launcher.h"

#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "preload/support/loaded_object.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

constexpr size_t kStackSize = 64 * 1024;
constexpr int kMaxVariables = 128;
constexpr const char kProgram[] = "/../../bin/lull";

// Everything that the two children need, made before they are: they share the
// memory of the target and may only make system calls.
struct Launch {
  char program[PATH_MAX];
  const char* arguments[5];
  const char* environment[kMaxVariables + 1];
  char* inner_stack_top;
  bool started;
};

// Where liblull.so lies. LD_PRELOAD may have named it relative to the folder that
// the target was started in.
bool find_program(char* out) {
  LoadedObject self;
  if (!find_object(reinterpret_cast<const void*>(&find_program), &self)) return false;
  size_t used = 0;
  if (self.path[0] != '/') {
    long size = syscall(SYS_getcwd, out, PATH_MAX);  // counts the terminator
    if (size <= 0 || out[0] != '/') return false;
    used = static_cast<size_t>(size) - 1;
    out[used++] = '/';
  }
  const char* slash = strrchr(self.path, '/');
  size_t folder = slash == nullptr ? 0 : static_cast<size_t>(slash - self.path);
  if (used + folder + 1 + sizeof kProgram > PATH_MAX) return false;
  memcpy(out + used, self.path, folder);
  if (folder == 0) out[used++] = '.';
  memcpy(out + used + folder, kProgram, sizeof kProgram);
  return syscall(SYS_faccessat, AT_FDCWD, out, X_OK) == 0;
}

void fill_environment(const Settings& settings, Launch* launch) {
  int count = 0;
  const char* entry = settings.relay_environment;
  for (; *entry != 0 && count < kMaxVariables; entry += strlen(entry) + 1) {
    launch->environment[count++] = entry;
  }
  launch->environment[count] = nullptr;
}

void close_all_descriptors() {
#ifdef SYS_close_range
  if (syscall(SYS_close_range, 0, ~0u, 0) == 0) return;
#endif
  for (int fd = 0; fd < 65536; ++fd) raw_close(fd);  // before Linux 5.9
}

int run_relay(void* argument) {
  auto* launch = static_cast<Launch*>(argument);
  close_all_descriptors();
  syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR);
  syscall(SYS_dup, 0);
  syscall(SYS_dup, 0);
  syscall(SYS_chdir, "/");
  uint64_t none = 0;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, nullptr, sizeof none);
  syscall(SYS_execve, launch->program, launch->arguments, launch->environment);
  launch->started = false;
  syscall(SYS_exit, 127);
  return 127;
}

int run_go_between(void* argument) {
  auto* launch = static_cast<Launch*>(argument);
  syscall(SYS_setsid);
  launch->started = true;  // run_relay() says otherwise
  if (clone(run_relay, launch->inner_stack_top, CLONE_VM | CLONE_VFORK | SIGCHLD,
            launch) < 0) {
    launch->started = false;
  }
  syscall(SYS_exit, 0);
  return 0;
}

}  // namespace

bool launch_relay(const Settings& settings, const char* socket_path) {
  constexpr size_t kSize = 2 * kStackSize + sizeof(Launch);
  void* memory =
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  char* stacks = static_cast<char*>(memory);
  auto* launch = reinterpret_cast<Launch*>(stacks + 2 * kStackSize);
  launch->inner_stack_top = stacks + kStackSize;
  const char* arguments[] = {"lull", "relay", "--socket", socket_path, nullptr};
  memcpy(launch->arguments, arguments, sizeof arguments);
  fill_environment(settings, launch);
  if (find_program(launch->program)) {
    // No exit signal: nothing but __WCLONE or __WALL ever sees this child.
    int child =
        clone(run_go_between, stacks + 2 * kStackSize, CLONE_VM | CLONE_VFORK, launch);
    if (child > 0) {
      while (syscall(SYS_wait4, child, nullptr, __WCLONE, nullptr) < 0 &&
             errno == EINTR) {
      }
    }
  }
  bool started = launch->started;
  munmap(memory, kSize);
  return started;
}

}  // namespace lull
