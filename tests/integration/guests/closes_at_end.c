// Closes a library from a destructor, which the loader runs at the very end, after
// those of the libraries that need this one. libGLX does so.
#include <dlfcn.h>
#include <stddef.h>

static void* library;

void keep_open(void) { library = dlopen("libm.so.6", RTLD_NOW); }

__attribute__((destructor)) static void close_it(void) {
  if (library != NULL) dlclose(library);
}
