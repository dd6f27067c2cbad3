// What happens when liblull.so is loaded. glibc hands argc, argv and envp to
// constructors, also to those of a library that comes in by dlopen.
#include <sys/auxv.h>

#include "preload/entry/settings.h"
#include "preload/entry/start.h"
#include "preload/hooks/record.h"
#include "preload/hooks/wait_originals.h"
#include "preload/support/libdl.h"
#include "preload/support/raw_syscall.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

__attribute__((constructor)) void load(int argc, char** argv, char** envp) {
  ErrnoKeeper errno_keeper;
  resolve_wait_originals();
  note_objects_of_the_program();
  if (libdl::loaded_late()) return;  // attach/attach.cc goes on
  // Without libdl a process has neither CUDA nor CPython, and never will.
  if (getauxval(AT_SECURE) == 0 && libdl::available()) {
    auto user = static_cast<uid_t>(syscall(SYS_geteuid));
    read_settings(argc, argv, envp, user, &settings());
  }
  initialize();
}

}  // namespace
}  // namespace lull
