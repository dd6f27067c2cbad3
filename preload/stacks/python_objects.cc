#include "preload/stacks/python_objects.h"

#include <cstring>

namespace lull {
namespace {

uint32_t character(const PythonText& text, size_t i) {
  switch (text.kind) {
    case 1:
      return text.data[i];
    case 2: {
      uint16_t value;
      memcpy(&value, text.data + 2 * i, sizeof value);
      return value;
    }
    default: {
      uint32_t value;
      memcpy(&value, text.data + 4 * i, sizeof value);
      return value;
    }
  }
}

// UTF-8 has no form for lone surrogates, which CPython puts into paths that are
// not valid UTF-8 themselves: they become U+FFFD, as do values beyond Unicode.
uint32_t encodable(uint32_t c) {
  return (c >= 0xd800 && c < 0xe000) || c > 0x10ffff ? 0xfffd : c;
}

size_t encoded_size(uint32_t c) {
  return c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
}

char* encode(uint32_t c, char* out) {
  if (c < 0x80) {
    *out++ = static_cast<char>(c);
  } else if (c < 0x800) {
    *out++ = static_cast<char>(0xc0 | (c >> 6));
    *out++ = static_cast<char>(0x80 | (c & 0x3f));
  } else {
    if (c < 0x10000) {
      *out++ = static_cast<char>(0xe0 | (c >> 12));
    } else {
      *out++ = static_cast<char>(0xf0 | (c >> 18));
      *out++ = static_cast<char>(0x80 | ((c >> 12) & 0x3f));
    }
    *out++ = static_cast<char>(0x80 | ((c >> 6) & 0x3f));
    *out++ = static_cast<char>(0x80 | (c & 0x3f));
  }
  return out;
}

}  // namespace

size_t utf8_size(const PythonText& text, size_t limit) {
  size_t size = 0;
  if (text.kind == 0) return 0;
  for (size_t i = 0; i < text.length; ++i) {
    size_t more = encoded_size(encodable(character(text, i)));
    if (size + more > limit) break;
    size += more;
  }
  return size;
}

void write_utf8(const PythonText& text, char* out, size_t size) {
  char* end = out + size;
  for (size_t i = 0; out < end; ++i) out = encode(encodable(character(text, i)), out);
}

bool text_ends_with(const PythonText& text, const char* ascii_suffix) {
  size_t length = strlen(ascii_suffix);
  if (text.kind == 0 || text.length < length) return false;
  size_t start = text.length - length;
  for (size_t i = 0; i < length; ++i) {
    if (character(text, start + i) != static_cast<unsigned char>(ascii_suffix[i])) {
      return false;
    }
  }
  return true;
}

}  // namespace lull
