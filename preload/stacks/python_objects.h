// Reading CPython's str and bytes objects where they lie: no calls into Python, no
// GIL, no reference counts. Safe while something that is alive on this thread (a
// frame on its stack) holds the object.
#pragma once

#include <cstddef>
#include <cstdint>

#include "preload/stacks/layouts/layout.h"

namespace lull {

// No object lies below the first 64 KiB or above the bits of user space, and
// all are aligned. A pointer that fails this is not followed.
inline bool plausible(uintptr_t address) {
#if defined(__aarch64__)  // the stack lies above 2^47
  constexpr int kAddressBits = 48;
#else
  constexpr int kAddressBits = 47;
#endif
  return address >= 0x10000 && address < (uintptr_t{1} << kAddressBits) &&
         address % 8 == 0;
}

template <typename T>
inline T load(uintptr_t base, int offset) {
  T value;
  __builtin_memcpy(&value, reinterpret_cast<const char*>(base) + offset, sizeof value);
  return value;
}

// The characters of a str. kind: bytes per character (1, 2 or 4), 0 = not readable
// (not a compact string; CPython makes all names and paths compact).
struct PythonText {
  const unsigned char* data;
  size_t length;  // in characters
  unsigned kind;
};
inline PythonText python_text(const CPythonLayout& layout, uintptr_t object) {
  PythonText text{nullptr, 0, 0};
  if (!plausible(object)) return text;
  // struct PyASCIIObject.state: interned:2, kind:3, compact:1, ascii:1.
  uint32_t state = load<uint32_t>(object, layout.str_state);
  unsigned kind = state >> 2 & 7;
  bool compact = (state & 1 << 5) != 0;
  bool ascii = (state & 1 << 6) != 0;
  if (!compact || (kind != 1 && kind != 2 && kind != 4)) return text;
  int data = ascii ? layout.str_ascii_size : layout.str_compact_size;
  text.data = reinterpret_cast<const unsigned char*>(object) + data;
  text.length = load<size_t>(object, layout.str_length);
  text.kind = kind;
  return text;
}

// Bytes that the longest prefix of whole characters takes as UTF-8, at most `limit`.
size_t utf8_size(const PythonText& text, size_t limit);

// Writes that prefix: exactly `size` bytes, a value that utf8_size() returned.
void write_utf8(const PythonText& text, char* out, size_t size);

// The last 8 bytes of `size` bytes of characters or data inside an object. Where
// there are fewer, the object's header in front of them is read instead.
inline uint64_t last_bytes(const unsigned char* data, size_t size) {
  uint64_t value;
  __builtin_memcpy(&value, data + size - sizeof value, sizeof value);
  return value;
}

bool text_ends_with(const PythonText& text, const char* ascii_suffix);

}  // namespace lull
