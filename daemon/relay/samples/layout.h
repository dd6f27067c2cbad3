// Which bytes of a target's interpreter are read. This is made from the layout that the
// shim wrote down, which is checked here: it may say anything.
#pragma once

#include <string.h>

#include <cstdint>
#include <optional>

#include "preload/abi/python_layout.h"

namespace lull::relay {

// Bytes [low, low + size) of a struct: all that is needed of it.
struct Span {
  int16_t low = 0;
  uint16_t size = 0;
};

struct FrameLayout {
  abi::PythonLayout at;
  uint64_t code_type = 0;  // &PyCode_Type
  Span thread;
  Span frame;
  Span code;
  Span text;             // of a str: state and length
  bool chunks = false;   // frames lie in chunks; false: each is an object of its own
  int frame_state = -1;  // of those objects; -1: there is no such field

  // nullopt: no interpreter looks like that.
  static std::optional<FrameLayout> Of(const abi::PythonLayout& layout,
                                       uint64_t code_type);
};

template <typename T>
inline T LoadAt(const char* bytes, int offset) {
  T value;
  memcpy(&value, bytes + offset, sizeof(value));
  return value;
}

// No object lies below the first 64 KiB or above the bits of user space, and all are
// aligned.
inline bool Plausible(uint64_t address) {
  constexpr int kAddressBits = 48;  // aarch64; 47 on x86-64, where such a read fails
  return address >= 0x10000 && address < (uint64_t{1} << kAddressBits) &&
         address % 8 == 0;
}

}  // namespace lull::relay
