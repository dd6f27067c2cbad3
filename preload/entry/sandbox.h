// Seccomp filters of the process's own, which may kill it for a system call of ours.
//
// Nobody but root can read what a filter does. So lull asks how many there are, and who
// installs them. Those of the container that `lull run` itself lives in, or that the
// first process of the PID namespace has, are the runtime's, which refuse and do not
// kill. Any other one ends what lull does here: nothing is started below a filter that
// the program has inherited or installed, and recording stops before one is installed
// (hooks/filter.cc).
#pragma once

#include <string_view>

namespace lull {

// Of a thread's status file. mode: 0 none, 1 strict, 2 filters; -1 not known.
// count: of filters; -1 where a kernel before 5.9 does not say.
struct SeccompState {
  int mode = -1;
  int count = -1;
};

// Pure: adds what a line of the file says.
void read_seccomp_line(std::string_view line, SeccompState* state);

// Pure. `outside`: the number of filters around `lull run`, -1 if nobody said. `first`:
// those of the first process of the namespace.
bool is_of_our_own(const SeccompState& self, int outside, const SeccompState& first);

// Cold. Whether this thread has filters beyond those of its container, as far as /proc
// tells: without /proc, none is known of.
bool has_filter_of_its_own();

// A filter was installed by this process, or by one that it is a fork of.
bool has_installed_filter();
// One is about to be: from here on nothing is recorded, and hooks make no system calls.
// A process with Python in it that has not recorded yet starts to, for as long: so the
// report knows of it. Preserves errno.
__attribute__((cold, noinline)) void filter_is_coming();

}  // namespace lull
