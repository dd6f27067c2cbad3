// LEB128 variable-length integers, and zigzag for signed ones.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lull::storage {

inline void PutVarint(std::string* out, uint64_t value) {
  char buffer[10];
  int size = 0;
  while (value >= 0x80) {
    buffer[size++] = static_cast<char>(value | 0x80);
    value >>= 7;
  }
  buffer[size++] = static_cast<char>(value);
  out->append(buffer, static_cast<size_t>(size));
}

inline uint64_t ZigZag(int64_t value) {
  return (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t UnZigZag(uint64_t value) {
  return static_cast<int64_t>(value >> 1) ^ -static_cast<int64_t>(value & 1);
}

// Takes one integer off the front of `in`; false when it is cut off or too long.
inline bool TakeVarint(std::string_view* in, uint64_t* value) {
  const char* at = in->data();
  const char* end = at + in->size();
  if (at != end && static_cast<uint8_t>(*at) < 0x80) {  // nine of ten are one byte
    *value = static_cast<uint8_t>(*at);
    in->remove_prefix(1);
    return true;
  }
  *value = 0;
  for (int shift = 0; shift < 70 && at != end; shift += 7) {
    auto byte = static_cast<uint8_t>(*at++);
    if (shift == 63 && byte > 1) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) {
      in->remove_prefix(static_cast<size_t>(at - in->data()));
      return true;
    }
  }
  return false;
}

}  // namespace lull::storage
