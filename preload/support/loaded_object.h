// Which object of this process an address lies in. Cold; takes the loader's lock
// for reading (dl_iterate_phdr), allocates nothing.
#pragma once

#include <link.h>

#include <cstdint>

namespace lull {

struct LoadedObject {
  const char* path;      // as the loader knows it, owned by the loader; "" = executable
  uintptr_t text_begin;  // the executable segment that holds the address
  uintptr_t text_end;
};

// Whether one of its segments holds the address. Takes no lock.
bool holds(const dl_phdr_info& object, const void* address);

bool find_object(const void* address, LoadedObject* found);

}  // namespace lull
