// Whether an address is code of this library: no look-up, no lock.
#pragma once

// Bounds that the linker provides, local to this library (versions.map).
extern "C" {
extern const char __ehdr_start __attribute__((visibility("hidden")));
extern const char _etext __attribute__((visibility("hidden")));
}

namespace lull {

inline bool is_our_code(const void* address) {
  return address >= &__ehdr_start && address < &_etext;
}

}  // namespace lull
