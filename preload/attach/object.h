// The parts of a loaded object that matter for its slots.
#pragma once

#include <link.h>

#include <cstddef>
#include <cstdint>

namespace lull {

struct Object {
  const void* dynamic;
  uintptr_t base, begin, end;  // load address; first and last mapped byte + 1
  uintptr_t relro_begin, relro_end;
  const ElfW(Sym) * symbols;
  const char* strings;
  const char* strings_end;
  struct Table {
    const ElfW(Rela) * entries;
    size_t count;
  } tables[2];   // DT_RELA without its relative ones, DT_JMPREL
  void* handle;  // while it is held (slots.cc)
};

// False for objects that are left alone. Reads memory alone, so that it may be called
// while the loader's list is locked (dl_iterate_phdr).
bool describe(const dl_phdr_info& info, Object* object);

}  // namespace lull
