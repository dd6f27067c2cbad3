// Every CUDA wrapper by name and library, for programs that look functions up
// by themselves. The macros of cuda_call.h put each wrapper into the table where
// it is defined; the linker gathers the entries of all files in one section.
#pragma once

#include "preload/hooks/real.h"

namespace lull {

struct WrapperEntry {
  const char* name;
  void* wrapper;
  Original* slot;
  Library library;
};

// Hidden bounds that the linker provides for the section lull_wrappers.
extern "C" {
extern const WrapperEntry __start_lull_wrappers[] __attribute__((visibility("hidden")));
extern const WrapperEntry __stop_lull_wrappers[] __attribute__((visibility("hidden")));
}

// True for a name that lull hooks in any CUDA library.
bool is_hooked_cuda_name(const char* name);

// `found` is what a look-up of `name` gave. Returns our wrapper in its place,
// remembering `found` as the original, if it is the function of a library that
// we know and the first one of its kind; else `found` itself.
// Leaves a process alone that will never record.
void* wrapper_for(const char* name, void* found);
// The same in any process.
void* wrapper_of(const char* name, void* found);

// The same for a driver function asked for by its plain name: the driver may
// have answered with a later version or a per-thread variant of it.
void* wrapper_for_driver_symbol(const char* symbol, void* found);

}  // namespace lull

#define LULL_TABLE_ENTRY(hook, symbol, library, slot)     \
  static const WrapperEntry entry_##symbol                \
      __attribute__((section("lull_wrappers"), used)) = { \
          #hook, reinterpret_cast<void*>(&symbol), &slot, Library::library};
