// What of an Input is here already, as RapidJSON wants a stream. Of h100_owlv2 39 % are
// what its lines are indented by: byte by byte that took 20 ms of an import, so spaces
// are passed eight at once.
#pragma once

#include <rapidjson/stream.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace lull::imports {

struct WindowStream : rapidjson::StringStream {
  // A NUL follows `window`.
  explicit WindowStream(std::string_view window)
      : rapidjson::StringStream(window.data()), end(window.data() + window.size()) {}
  const char* end;
};

// RapidJSON calls it, in place of its own, which goes byte by byte.
inline void SkipWhitespace(WindowStream& stream) {
  constexpr uint64_t kSpaces = 0x2020202020202020;
  const char* at = stream.src_;
  while (*at == ' ' || *at == '\n' || *at == '\r' || *at == '\t') {
    ++at;
    for (uint64_t others = 0; others == 0 && stream.end - at >= 8;) {
      std::memcpy(&others, at, 8);
      others ^= kSpaces;
      at += (std::endian::native == std::endian::little ? std::countr_zero(others)
                                                        : std::countl_zero(others)) /
            8;
    }
  }
  stream.src_ = at;
}

}  // namespace lull::imports

template <>
struct rapidjson::StreamTraits<lull::imports::WindowStream> {
  enum { copyOptimization = 1 };
};
