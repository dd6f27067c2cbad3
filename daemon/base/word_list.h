// Long lists of names as a text of words.
#pragma once

#include <algorithm>
#include <string_view>

namespace lull {

// Whether `name`, which has no spaces, is one of `words`, which have one between them.
inline bool IsAmong(std::string_view name, std::string_view words) {
  while (!words.empty()) {
    const std::string_view word = words.substr(0, words.find(' '));
    if (word == name) return true;
    words.remove_prefix(std::min(words.size(), word.size() + 1));
  }
  return false;
}

}  // namespace lull
