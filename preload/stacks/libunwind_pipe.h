// Keeps libunwind from leaving descriptors in the target.
//
// To find out whether an address can be read, libunwind writes a byte from there
// into a pipe of its own, which it opens with its first stack and never closes. In
// a guest that is two descriptors that the program finds in its table; and once
// the program has closed everything above 2, as daemons do, and opened files of its
// own under the same numbers, libunwind would write into those.
#pragma once

#include <link.h>

namespace lull {

// Redirects the calls of `libunwind` to pipe2, read, write and syscall to functions
// that need no descriptor. Before its first stack. False: it could not be done, and the
// library must not be used.
bool take_pipe_from(const link_map& libunwind);

}  // namespace lull
