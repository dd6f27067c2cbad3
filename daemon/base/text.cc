#include "daemon/base/text.h"

#include <string.h>

#include <cstdint>

namespace lull {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";

bool IsContinuation(unsigned char byte) { return (byte & 0xc0) == 0x80; }

// Length of the well-formed character at the front of `text`, or 0. Overlong
// forms, surrogates and values beyond U+10FFFF are not well formed.
size_t CharacterLength(std::string_view text) {
  auto at = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  unsigned char first = at(0);
  if (first < 0x80) return 1;
  size_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() < length) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (!IsContinuation(at(i))) return 0;
  }
  if (first == 0xe0 && at(1) < 0xa0) return 0;
  if (first == 0xed && at(1) > 0x9f) return 0;
  if (first == 0xf0 && at(1) < 0x90) return 0;
  if (first == 0xf4 && at(1) > 0x8f) return 0;
  return length;
}

// How many characters at the front are ASCII.
size_t AsciiLength(std::string_view text) {
  constexpr uint64_t kTopBits = 0x8080808080808080;
  size_t length = 0;
  uint64_t word;
  for (; length + sizeof(word) <= text.size(); length += sizeof(word)) {
    memcpy(&word, text.data() + length, sizeof(word));
    if ((word & kTopBits) != 0) break;
  }
  while (length < text.size() && static_cast<unsigned char>(text[length]) < 0x80) {
    ++length;
  }
  return length;
}

}  // namespace

std::string CleanText(std::string_view text, size_t limit) {
  // Nearly all names are ASCII.
  const size_t plain = AsciiLength(text.substr(0, limit));
  std::string clean;
  clean.reserve(text.size() < limit ? text.size() : limit);
  clean.append(text.substr(0, plain));
  text.remove_prefix(plain);
  while (!text.empty()) {
    size_t length = CharacterLength(text);
    std::string_view piece = length == 0 ? kReplacement : text.substr(0, length);
    if (clean.size() + piece.size() > limit) break;
    clean.append(piece);
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return clean;
}

}  // namespace lull
