#include "preload/hooks/wrapper_table.h"

#include <string.h>

#include "preload/entry/state.h"
#include "preload/support/symbols.h"

namespace lull {
namespace {

// A process that will never record keeps its own pointers.
bool inert() { return g_state->mode.load(std::memory_order_acquire) == Mode::kInert; }

void* take_over(const WrapperEntry& entry, void* found) {
  return remember_original(*entry.slot, found) == found ? entry.wrapper : found;
}

// Every dlsym of the process comes by here, the first ones before a sanitizer has
// made its strcmp ready: compared by hand.
bool may_be_cuda(const char* name) {
  if (name[0] == 'c') return name[1] == 'u';
  return name[0] == '_' && name[1] == '_' && name[2] == 'c' && name[3] == 'u';
}

// What the driver may append to the plain name of a function.
bool is_variant_suffix(const char* rest) {
  constexpr const char* kSuffixes[] = {"",      "_v2",      "_ptsz",
                                       "_ptds", "_v2_ptsz", "_v2_ptds"};
  for (const char* suffix : kSuffixes) {
    if (strcmp(rest, suffix) == 0) return true;
  }
  return false;
}

bool is_variant(const char* name, const char* symbol) {
  size_t size = strlen(symbol);
  return strncmp(name, symbol, size) == 0 && is_variant_suffix(name + size);
}

}  // namespace

bool is_hooked_cuda_name(const char* name) {
  if (!may_be_cuda(name)) return false;
  for (const auto* entry = __start_lull_wrappers; entry != __stop_lull_wrappers;
       ++entry) {
    if (strcmp(entry->name, name) == 0) return true;
  }
  return false;
}

void* wrapper_for(const char* name, void* found) {
  return inert() ? found : wrapper_of(name, found);
}

void* wrapper_of(const char* name, void* found) {
  Library library;
  if (!library_of(found, &library)) return found;
  for (const auto* entry = __start_lull_wrappers; entry != __stop_lull_wrappers;
       ++entry) {
    if (entry->library == library && strcmp(entry->name, name) == 0) {
      return take_over(*entry, found);
    }
  }
  return found;
}

void* wrapper_for_driver_symbol(const char* symbol, void* found) {
  Library library;
  if (inert() || !library_of(found, &library) || library != Library::kDriver)
    return found;
  for (const auto* entry = __start_lull_wrappers; entry != __stop_lull_wrappers;
       ++entry) {
    if (entry->library != Library::kDriver || !is_variant(entry->name, symbol))
      continue;
    void* exported = symbol_beside(found, entry->name);
    if (exported == found) return take_over(*entry, found);
  }
  return found;
}

}  // namespace lull
