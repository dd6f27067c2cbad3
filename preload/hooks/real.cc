#include "preload/hooks/real.h"

#include <string.h>

#include "preload/hooks/record.h"
#include "preload/support/libdl.h"
#include "preload/support/loaded_object.h"
#include "preload/support/pins.h"
#include "preload/support/symbols.h"

namespace lull {

Original g_runtime_originals[kCudartCount][size_t(RuntimeIndex::kCount)];
Original g_driver_originals[size_t(DriverIndex::kCount)];

namespace {

// How to know each library by its DT_SONAME. Wheels may have changed the middle
// (libcudart-e409450e.so.11.0). The version node always keeps the vendor's name.
// All versions of CUPTI are one library.
struct Identity {
  const char* prefix;
  const char* suffix;  // nullptr: any
  const char* version_node;
};
constexpr Identity kIdentities[kLibraryCount] = {
    {"libcudart", ".so.11.0", "libcudart.so.11.0"},
    {"libcudart", ".so.12", "libcudart.so.12"},
    {"libcudart", ".so.13", "libcudart.so.13"},
    {"libcuda.so.1", "", nullptr},
    {"libcupti", nullptr, nullptr},
};

const Identity& identity_of(Library library) {
  return kIdentities[static_cast<int>(library)];
}

bool matches(const Identity& identity, const char* soname) {
  size_t size = strlen(soname);
  size_t prefix = strlen(identity.prefix);
  if (strncmp(soname, identity.prefix, prefix) != 0) return false;
  if (identity.suffix == nullptr) return true;
  size_t suffix = strlen(identity.suffix);
  if (size < prefix + suffix) return false;
  if (suffix == 0) return size == prefix;
  return memcmp(soname + size - suffix, identity.suffix, suffix) == 0;
}

struct Search {
  const void* address;  // nullptr: any object
  Library library;
  const void* found;  // somewhere inside the object
};

// The soname is read from the object itself: its path may be any.
const char* soname_of(const dl_phdr_info& info) {
  if (info.dlpi_name == nullptr || *info.dlpi_name == '\0') return nullptr;
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    if (info.dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    link_map object{};
    object.l_addr = info.dlpi_addr;
    object.l_name = const_cast<char*>(info.dlpi_name);
    object.l_ld =
        reinterpret_cast<ElfW(Dyn)*>(info.dlpi_addr + info.dlpi_phdr[i].p_vaddr);
    return libdl::soname_of(object);
  }
  return nullptr;
}

int match_library(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  const char* soname = soname_of(*info);
  if (soname == nullptr || !matches(identity_of(search->library), soname)) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_DYNAMIC) continue;
    search->found = reinterpret_cast<const void*>(info->dlpi_addr + segment.p_vaddr);
  }
  return 1;
}

int match_address(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (!holds(*info, search->address)) return 0;
  const char* soname = soname_of(*info);
  for (int i = 0; soname != nullptr && i < kLibraryCount; ++i) {
    if (!matches(kIdentities[i], soname)) continue;
    search->library = static_cast<Library>(i);
    search->found = search->address;
    break;
  }
  return 1;
}

// Somewhere in the mapped object that is this library, wherever its loader keeps it;
// nullptr: there is none.
const void* place_of(Library library) {
  Search search{nullptr, library, nullptr};
  dl_iterate_phdr(match_library, &search);
  return search.found;
}

}  // namespace

bool library_of(const void* address, Library* library) {
  Search search{address, Library{}, nullptr};
  dl_iterate_phdr(match_address, &search);
  *library = search.library;
  return search.found != nullptr;
}

void* remember_original(Original& slot, void* found) {
  void* expected = nullptr;
  if (!slot.compare_exchange_strong(expected, found, std::memory_order_acq_rel)) {
    return expected;
  }
  pin_later(found);
  return found;
}

void* resolve_original(Library library, const char* name, Original& slot) {
  ErrnoKeeper keeper;
  if (!libdl::available()) return nullptr;
  void* found = next_function(name, identity_of(library).version_node);
  if (found == nullptr) {
    const void* place = place_of(library);
    // A reference without a version was bound to our newest wrapper. Without us it
    // would have met whatever runtime there is. Not kept: the right one may still be
    // loaded.
    if (place == nullptr) return next_function(name, nullptr);
    found = symbol_beside(place, name);
  }
  return found != nullptr ? remember_original(slot, found) : nullptr;
}

}  // namespace lull
