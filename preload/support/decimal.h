// The number that a text begins with. Not atoi(), which is a symbol of glibc 2.38 when
// compiled with its headers, and may be a sanitizer's that is not ready yet.
#pragma once

namespace lull {

// 0 when there is none; `*text` then stands where it was, else behind the number. Of a
// number beyond a million the digits after that are left out.
inline int take_decimal(const char** text) {
  int number = 0;
  for (; **text >= '0' && **text <= '9'; ++*text) {
    if (number < 1'000'000) number = number * 10 + (**text - '0');
  }
  return number;
}

}  // namespace lull
