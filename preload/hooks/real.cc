#include "preload/hooks/real.h"

#include <string.h>

#include "preload/hooks/record.h"
#include "preload/support/libdl.h"

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

void* next_in_scope(Library library, const char* name) {
  return libdl::beyond_us(name, identity_of(library).version_node);
}

// Another handle of the object at `address`. Never loads anything.
void* handle_of(const void* address) {
  const link_map* object = libdl::object_of(address);
  if (object == nullptr || object->l_name == nullptr || *object->l_name == '\0') {
    return nullptr;
  }
  return libdl::open(object->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

struct Search {
  const Identity& identity;
  const void* address;  // somewhere inside the object, once it is found
};

// The soname is read from the object itself: its path may be any.
int match_soname(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<Search*>(data);
  if (info->dlpi_name == nullptr || *info->dlpi_name == '\0') return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_DYNAMIC) continue;
    link_map object{};
    object.l_addr = info->dlpi_addr;
    object.l_name = const_cast<char*>(info->dlpi_name);
    object.l_ld =
        reinterpret_cast<ElfW(Dyn)*>(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    if (!matches(search->identity, libdl::soname_of(object))) continue;
    search->address = object.l_ld;
    return 1;
  }
  return 0;
}

// The libraries themselves, kept once found. Pinned, so a handle stays valid.
std::atomic<void*> g_handles[kLibraryCount];

void* library_handle(Library library) {
  std::atomic<void*>& known = g_handles[static_cast<int>(library)];
  if (void* handle = known.load(std::memory_order_acquire)) return handle;
  Search search{identity_of(library), nullptr};
  if (dl_iterate_phdr(match_soname, &search) == 0) return nullptr;
  void* handle = handle_of(search.address);
  if (handle != nullptr) known.store(handle, std::memory_order_release);
  return handle;
}

void pin(const void* address) {
  if (void* handle = handle_of(address)) libdl::close(handle);
}

}  // namespace

bool library_of(const void* address, Library* library) {
  const link_map* object = libdl::object_of(address);
  if (object == nullptr) return false;
  const char* soname = libdl::soname_of(*object);
  for (int i = 0; i < kLibraryCount; ++i) {
    if (matches(kIdentities[i], soname)) {
      *library = static_cast<Library>(i);
      return true;
    }
  }
  return false;
}

void* find_in_library(Library library, const char* name) {
  ErrnoKeeper keeper;
  libdl::Dlsym real = libdl::real_dlsym();
  void* handle = real != nullptr ? library_handle(library) : nullptr;
  void* found = handle != nullptr ? real(handle, name) : nullptr;
  if (found == nullptr && real != nullptr) libdl::error();
  return found;
}

void* remember_original(Original& slot, void* found) {
  void* expected = nullptr;
  if (!slot.compare_exchange_strong(expected, found, std::memory_order_acq_rel)) {
    return expected;
  }
  pin(found);
  return found;
}

void* resolve_original(Library library, const char* name, Original& slot) {
  ErrnoKeeper keeper;
  libdl::Dlsym real = libdl::real_dlsym();
  if (real == nullptr) return nullptr;
  void* found = next_in_scope(library, name);
  if (found == nullptr) {
    void* handle = library_handle(library);
    // A reference without a version was bound to our newest wrapper. Without us
    // it would have met whatever runtime there is. Not kept: the right one may
    // still be loaded.
    if (handle == nullptr) return libdl::beyond_us(name, nullptr);
    found = real(handle, name);
  }
  if (found == nullptr) return nullptr;
  return remember_original(slot, found);
}

}  // namespace lull
