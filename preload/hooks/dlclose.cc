// dlclose, so that what we point into is never unloaded: the last moment to pin it, on
// a thread that asks the loader anyway (support/pins.h).
#include "preload/stacks/stacks.h"
#include "preload/support/libdl.h"
#include "preload/support/pins.h"

namespace lull {

extern "C" __attribute__((visibility("default"))) int lull_dlclose_hook(
    void* handle) __asm__("dlclose");

int lull_dlclose_hook(void* handle) {
  if (libdl::is_glibc()) {
    pin_now();
    stacks_load_if_wanted();
  }
  return libdl::close(handle);
}

extern "C" __attribute__((visibility("hidden"), alias("dlclose"))) int lull_own_dlclose(
    void* handle);

}  // namespace lull
