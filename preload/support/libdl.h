// dlopen and friends, at the symbol versions that glibc 2.28 has too.
//
// A library built on glibc 2.34 or later would otherwise ask for GLIBC_2.34 and
// not load on older systems. There the functions live in libdl.so.2, which lull
// must not need; a process without it cannot load libraries at all. So: ask
// available() before anything else here, and link with -z lazy.
#pragma once

#include <dlfcn.h>
#include <link.h>

// glibc's own mark. Weak, as all must be that another libc does not have: its loader
// binds everything at once, and ends a process that lacks something.
extern "C" __attribute__((weak)) const char* gnu_get_libc_version();

namespace lull::libdl {

#if defined(__x86_64__)
#define LULL_LIBDL_VERSION "GLIBC_2.2.5"
#define LULL_DLADDR1_VERSION "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define LULL_LIBDL_VERSION "GLIBC_2.17"
#define LULL_DLADDR1_VERSION "GLIBC_2.17"
#else
#error "lull knows x86-64 and aarch64"
#endif

// False in a process of another libc (musl), whose loader takes this library for one of
// its own: nothing is recorded there, and the hooks hand on what they are asked. Of the
// functions below real_dlsym() and real_dlclose() alone are there.
bool is_glibc();

// True when the functions below can be called. Decided anew until it is true.
bool available();

void* open(const char* path, int flags);
int close(void* handle);
// The message of the last failure on this thread, which it clears.
char* error();
void* versioned_symbol(void* handle, const char* name, const char* version);

// The real dlsym, past our own hook of it; nullptr when the process has none.
using Dlsym = void* (*)(void*, const char*);
Dlsym real_dlsym();

// The real dlclose, which close() calls.
using Dlclose = int (*)(void*);
Dlclose real_dlclose();

// True when this library came in by a dlopen, behind libc, and not with the program:
// then it stands in nobody's scope, and "after us" means nothing.
bool loaded_late();

// What the loader would have bound `name` to without us, in the scope of the program;
// nullptr for nothing. `version` may be nullptr. Not dlsym(RTLD_NEXT) once loaded late:
// glibc then walks a list of objects that need not have us in it.
void* beyond_us(const char* name, const char* version);

// The loaded object that holds an address, or nullptr.
const link_map* object_of(const void* address);

// Its DT_SONAME; its file name where it has none. Never nullptr.
const char* soname_of(const link_map& object);

}  // namespace lull::libdl
