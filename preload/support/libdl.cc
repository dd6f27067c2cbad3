#include "preload/support/libdl.h"

#include <string.h>

#include <atomic>

#include "preload/support/decimal.h"
#include "preload/support/loaded_object.h"
#include "preload/support/own_code.h"
#include "preload/support/symbols.h"

// Weak: without libdl they are null, and LD_BIND_NOW does not end the process.
extern "C" {
__attribute__((weak)) void* lull_dlopen(const char*, int);
__attribute__((weak)) char* lull_dlerror();
__attribute__((weak)) void* lull_dlvsym(void*, const char*, const char*);
__attribute__((weak)) int lull_dladdr1(const void*, Dl_info*, void**, int);
}
asm(".symver lull_dlopen, dlopen@" LULL_LIBDL_VERSION);
asm(".symver lull_dlerror, dlerror@" LULL_LIBDL_VERSION);
asm(".symver lull_dlvsym, dlvsym@" LULL_LIBDL_VERSION);
asm(".symver lull_dladdr1, dladdr1@" LULL_DLADDR1_VERSION);

namespace lull::libdl {
namespace {

// glibc 2.34 moved libdl into libc.
bool libc_has_libdl() {
  if (!is_glibc()) return false;
  const char* version = gnu_get_libc_version();
  int major = take_decimal(&version);
  if (*version == '.') ++version;
  return major > 2 || (major == 2 && take_decimal(&version) >= 34);
}

int is_libdl(dl_phdr_info* info, size_t, void*) {
  return info->dlpi_name != nullptr &&
         strstr(info->dlpi_name, "/libdl.so.2") != nullptr;
}

enum First { kNeither, kUs, kLibc };

int first_of_two(dl_phdr_info* info, size_t, void*) {
  if (holds(*info, &__ehdr_start)) return kUs;
  return holds(*info, reinterpret_cast<const void*>(&gnu_get_libc_version)) ? kLibc
                                                                            : kNeither;
}

// A program with ThreadSanitizer calls dlsym, hence us, before its own dl_iterate_phdr
// is ready to be called.
bool libc_precedes_us() {
  const link_map* libc =
      object_of(reinterpret_cast<const void*>(&gnu_get_libc_version));
  const link_map* at = object_of(&__ehdr_start);
  while (at != nullptr && at != libc) at = at->l_prev;
  return at != nullptr;
}

template <typename Function>
Function next_of(const char* name) {
  NextSymbol symbol = {name, nullptr};
  find_next_symbols(&symbol, 1);
  return reinterpret_cast<Function>(symbol.address);
}

}  // namespace

bool is_glibc() { return gnu_get_libc_version != nullptr; }

bool available() {
  static std::atomic<bool> known{false};
  if (known.load(std::memory_order_relaxed)) return true;
  bool found = libc_has_libdl() || dl_iterate_phdr(is_libdl, nullptr) != 0;
  if (found) known.store(true, std::memory_order_relaxed);
  return found;
}

void* open(const char* path, int flags) { return lull_dlopen(path, flags); }
int close(void* handle) {
  Dlclose real = real_dlclose();
  return real != nullptr ? real(handle) : -1;
}
char* error() { return lull_dlerror(); }
void* versioned_symbol(void* handle, const char* name, const char* version) {
  return lull_dlvsym(handle, name, version);
}

Dlsym real_dlsym() {
  static std::atomic<Dlsym> known{nullptr};
  Dlsym found = known.load(std::memory_order_relaxed);
  if (__builtin_expect(found != nullptr, 1)) return found;
  if (!is_glibc()) {
    found = next_of<Dlsym>("dlsym");
  } else if (available()) {
    void* handle = loaded_late() ? RTLD_DEFAULT : RTLD_NEXT;
    found = reinterpret_cast<Dlsym>(lull_dlvsym(handle, "dlsym", LULL_LIBDL_VERSION));
  }
  known.store(found, std::memory_order_relaxed);
  return found;
}

// By its name alone it would be our own hook.
Dlclose real_dlclose() {
  static std::atomic<Dlclose> known{nullptr};
  Dlclose found = known.load(std::memory_order_relaxed);
  if (__builtin_expect(found != nullptr, 1)) return found;
  if (!is_glibc()) {
    found = next_of<Dlclose>("dlclose");
  } else if (available()) {
    void* handle = loaded_late() ? RTLD_DEFAULT : RTLD_NEXT;
    found =
        reinterpret_cast<Dlclose>(lull_dlvsym(handle, "dlclose", LULL_LIBDL_VERSION));
  }
  known.store(found, std::memory_order_relaxed);
  return found;
}

bool loaded_late() {
  static std::atomic<int> known{-1};
  int late = known.load(std::memory_order_relaxed);
  if (late >= 0) return late != 0;
  late = available() ? libc_precedes_us()
                     : dl_iterate_phdr(first_of_two, nullptr) == kLibc;
  known.store(late, std::memory_order_relaxed);
  return late != 0;
}

void* beyond_us(const char* name, const char* version) {
  Dlsym real = real_dlsym();
  if (real == nullptr) return nullptr;
  bool late = loaded_late();
  void* handle = late ? RTLD_DEFAULT : RTLD_NEXT;
  void* found =
      version != nullptr ? lull_dlvsym(handle, name, version) : real(handle, name);
  // Behind the program's scope comes our own.
  return late && is_our_code(found) ? nullptr : found;
}

const link_map* object_of(const void* address) {
  Dl_info info;
  void* object = nullptr;
  if (lull_dladdr1(address, &info, &object, RTLD_DL_LINKMAP) == 0) return nullptr;
  return static_cast<const link_map*>(object);
}

const char* soname_of(const link_map& object) {
  const char* strings = nullptr;
  ElfW(Xword) soname = 0;
  for (const ElfW(Dyn)* entry = object.l_ld; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_SONAME) soname = entry->d_un.d_val;
    if (entry->d_tag == DT_STRTAB) {
      // The loader has added the load address, but for the vDSO.
      ElfW(Addr) table = entry->d_un.d_ptr;
      strings = reinterpret_cast<const char*>(
          table < object.l_addr ? table + object.l_addr : table);
    }
  }
  if (strings != nullptr && soname != 0) return strings + soname;
  if (object.l_name == nullptr) return "";
  const char* slash = strrchr(object.l_name, '/');
  return slash != nullptr ? slash + 1 : object.l_name;
}

}  // namespace lull::libdl
