#include "preload/entry/sandbox.h"

#include <fcntl.h>
#include <string.h>

#include <atomic>

#include "preload/entry/settings.h"
#include "preload/entry/start.h"
#include "preload/entry/state_page.h"
#include "preload/hooks/record.h"
#include "preload/ring/backing.h"
#include "preload/support/raw_syscall.h"

namespace lull {
namespace {

// Survives fork, as the filter does.
std::atomic<bool> g_installed{false};

constexpr size_t kLongestLine = 64;  // of those that are wanted

// Whole lines of a file, one after the other; of longer ones the beginning.
template <typename Visit>
void for_each_line(int fd, Visit visit) {
  char line[kLongestLine];
  size_t size = 0;
  char chunk[1024];
  for (;;) {
    long got = syscall(SYS_read, fd, chunk, sizeof chunk);
    if (got <= 0) return;
    for (long i = 0; i < got; ++i) {
      if (chunk[i] == '\n') {
        visit(std::string_view(line, size));
        size = 0;
      } else if (size < kLongestLine) {
        line[size++] = chunk[i];
      }
    }
  }
}

SeccompState read_state(const char* path) {
  SeccompState state;
  int fd =
      static_cast<int>(syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0));
  if (fd < 0) return state;
  for_each_line(fd, [&](std::string_view line) { read_seccomp_line(line, &state); });
  raw_close(fd);
  return state;
}

bool value_of(std::string_view line, std::string_view name, int* value) {
  if (line.size() <= name.size() || line.substr(0, name.size()) != name) return false;
  int number = 0;
  for (char digit : line.substr(name.size())) {
    if (digit < '0' || digit > '9' || number > 1'000'000) return false;
    number = 10 * number + (digit - '0');
  }
  *value = number;
  return true;
}

// A vfork child shares our memory, and installs a filter for what it is about to
// become.
bool is_another_process() {
  StatePage* page = state_page();
  pid_t owner = page == nullptr ? 0 : page->owner.load(std::memory_order_relaxed);
  return owner != 0 && owner != raw_getpid();
}

bool is_starting() {
  StatePage* page = state_page();
  return page != nullptr && (page->looker.load(std::memory_order_acquire) != nullptr ||
                             page->starting.load(std::memory_order_acquire) != 0);
}

}  // namespace

void read_seccomp_line(std::string_view line, SeccompState* state) {
  if (!value_of(line, "Seccomp:\t", &state->mode)) {
    value_of(line, "Seccomp_filters:\t", &state->count);
  }
}

bool is_of_our_own(const SeccompState& self, int outside, const SeccompState& first) {
  if (self.mode <= 0) return false;
  if (self.count >= 0 && (self.count == outside || self.count == first.count)) {
    return false;
  }
  return self.count >= 0 || first.mode <= 0;
}

bool has_filter_of_its_own() {
  SeccompState self = read_state("/proc/thread-self/status");
  if (self.mode <= 0) return false;
  return is_of_our_own(self, settings().filters, read_state("/proc/1/status"));
}

bool has_installed_filter() { return g_installed.load(std::memory_order_relaxed); }

void filter_is_coming() {
  if (has_installed_filter()) return;
  ErrnoKeeper errno_keeper;
  if (is_another_process()) return;
  // Or waits for the thread that is about to.
  if (has_python() || is_starting()) try_start_recording(Trigger::kFilter);
  g_installed.store(true, std::memory_order_relaxed);
  if (g_state->mode.load(std::memory_order_acquire) == Mode::kRecording) {
    end_recording(g_state->segment.load(std::memory_order_relaxed),
                  abi::EndedBy::kFilter);
  }
}

}  // namespace lull
