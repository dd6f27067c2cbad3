// Comparisons of C strings.
#pragma once

#include <string.h>

namespace lull {

inline bool starts_with(const char* text, const char* prefix) {
  return strncmp(text, prefix, strlen(prefix)) == 0;
}

inline bool ends_with(const char* text, const char* suffix) {
  size_t size = strlen(text), tail = strlen(suffix);
  return size >= tail && strcmp(text + size - tail, suffix) == 0;
}

}  // namespace lull
