#include "preload/attach/targets.h"

#include <string.h>

#include <cstddef>
#include <cstdint>

#include "preload/hooks/filter_originals.h"
#include "preload/hooks/wait_originals.h"
#include "preload/hooks/wrapper_table.h"
#include "preload/support/libdl.h"

// Declared by name alone: addresses are all that is wanted here.
extern "C" {
#define LULL_IF_torch(name) __attribute__((visibility("protected"))) void name();
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(name)
LULL_TORCH_HOOKS(LULL_ROW)
#undef LULL_ROW
__attribute__((visibility("hidden"))) void lull_own_dlsym();
__attribute__((visibility("hidden"))) int lull_own_dlclose(void*);
__attribute__((visibility("hidden"))) void lull_own_prctl();
__attribute__((visibility("hidden"))) void lull_own_syscall();
#define LULL_OWN(result, name, parameters, arguments) \
  __attribute__((visibility("hidden"))) result lull_own_##name parameters;
#define LULL_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_OWN, result, name, parameters, arguments)
LULL_LIBC_HOOKS(LULL_ROW)
#undef LULL_ROW
}

namespace lull {
namespace {

// Functions of libc and PyTorch. Each has one original for the whole process.
struct Plain {
  const char* name;
  void* wrapper;
  void* (*original)();  // nullptr: whatever the slot is bound to (PyTorch)
};

#define LULL_PLAIN(result, name, parameters, arguments)          \
  {#name, reinterpret_cast<void*>(&lull_own_##name), [] {        \
     return reinterpret_cast<void*>(                             \
         g_wait_originals.name.load(std::memory_order_relaxed)); \
   }},
#define LULL_WAIT_ROW(id, family, need, result, name, parameters, arguments, event) \
  LULL_IF_##family(LULL_PLAIN, result, name, parameters, arguments)
#define LULL_TORCH_ROW(id, family, need, result, name, parameters, arguments, event) \
  {#name, reinterpret_cast<void*>(&name), nullptr},
const Plain kPlain[] = {
    LULL_LIBC_HOOKS(LULL_WAIT_ROW) LULL_TORCH_HOOKS(LULL_TORCH_ROW){
        "dlsym", reinterpret_cast<void*>(&lull_own_dlsym),
        [] { return reinterpret_cast<void*>(libdl::real_dlsym()); }},
    {"dlclose", reinterpret_cast<void*>(&lull_own_dlclose),
     [] { return reinterpret_cast<void*>(libdl::real_dlclose()); }},
    {"prctl", reinterpret_cast<void*>(&lull_own_prctl), original_prctl},
    {"syscall", reinterpret_cast<void*>(&lull_own_syscall), original_syscall},
};

const Plain* find_plain(const char* name) {
  for (const Plain& plain : kPlain) {
    if (strcmp(plain.name, name) == 0) return &plain;
  }
  return nullptr;
}

// Names differ in their first eight bytes, but for C++ ones, which PyTorch's libraries
// import by the ten thousand: those are told apart from byte 8 on.
uint64_t key_of(const char* name, const char* end) {
  auto room = static_cast<size_t>(end - name);
  size_t from = 0;
  if (room > 16 && name[0] == '_' && name[1] == 'Z') from = 8;
  uint64_t word = 0;
  memcpy(&word, name + from, room - from < 8 ? room - from : 8);
  // What lies behind a short name is another one.
  for (int byte = 0; byte < 8; ++byte) {
    if ((word >> (8 * byte) & 0xff) != 0) continue;
    word &= (uint64_t{1} << (8 * byte)) - 1;
    break;
  }
  return word;
}

constexpr size_t kBits = 4096;
uint64_t g_filter[kBits / 64];

size_t bit_of(uint64_t key) { return (key * 0x9e3779b97f4a7c15) >> 52; }
static_assert(kBits == size_t{1} << 12);

void add(const char* name) {
  size_t bit = bit_of(key_of(name, name + strlen(name) + 1));
  g_filter[bit / 64] |= uint64_t{1} << (bit % 64);
}

void fill_filter() {
  for (const Plain& plain : kPlain) add(plain.name);
  for (const auto* entry = __start_lull_wrappers; entry != __stop_lull_wrappers;
       ++entry) {
    add(entry->name);
  }
}

}  // namespace

bool is_hooked_name(const char* name, const char* end) {
  static bool filled = false;  // one thread at a time is here (attach/slots.cc)
  if (!filled) fill_filter();
  filled = true;
  size_t bit = bit_of(key_of(name, end));
  if ((g_filter[bit / 64] >> (bit % 64) & 1) == 0) return false;
  return is_hooked_cuda_name(name) || find_plain(name) != nullptr;
}

void* wrapper_of_bound(const char* name, void* bound) {
  const Plain* plain = find_plain(name);
  if (plain == nullptr) return wrapper_of(name, bound);
  if (plain->original != nullptr && plain->original() != bound) return bound;
  return plain->wrapper;
}

bool is_wrapper(const char* name, void* bound, void** original) {
  *original = nullptr;
  if (const Plain* plain = find_plain(name)) {
    if (plain->original != nullptr) *original = plain->original();
    return plain->wrapper == bound;
  }
  for (const auto* entry = __start_lull_wrappers; entry != __stop_lull_wrappers;
       ++entry) {
    if (entry->wrapper != bound || strcmp(entry->name, name) != 0) continue;
    *original = entry->slot->load(std::memory_order_acquire);
    return true;
  }
  return false;
}

}  // namespace lull
