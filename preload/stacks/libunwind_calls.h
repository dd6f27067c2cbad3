// libunwind, as a guest can bear it.
//
// No descriptors. To find out whether an address can be read, libunwind writes a byte
// from there into a pipe of its own, which it opens with its first stack and never
// closes. In a guest that is two descriptors that the program finds in its table; and
// once the program has closed everything above 2, as daemons do, and opened files of
// its own under the same numbers, libunwind would write into those.
//
// No functions of the program in libc's place. libunwind destroys its cache of a thread
// in the last round of the thread's destructors, under a lock: that of a program with
// ThreadSanitizer crashes there, its state of the thread being gone by then. It would
// also report libunwind's races, which are none: it sees half of what orders them.
//
// No memory of the loader's for each thread. Where a library that was opened late keeps
// something for each thread, the loader allocates it at the thread's first use; where
// there is no memory it ends the process. Ours has it beside the thread's own
// (tools/libunwind/build); the distributions' do not, and are refused.
#pragma once

#include <link.h>

namespace lull {

// Redirects the calls that `libunwind` makes: those around the pipe to functions that
// need no descriptor, the others to libc itself, but for the heap's. Before its first
// stack. False: it could not be done, or the loader would allocate; the library must
// not be used.
bool redirect_calls_of(const link_map& libunwind);

}  // namespace lull
