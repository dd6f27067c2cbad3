// Text from elsewhere (file names, command lines, symbols) made fit for protobuf.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lull {

// The limit of every string on the wire, see proto/events.proto.
inline constexpr size_t kMaxWireString = 4096;

// Valid UTF-8 of at most `limit` bytes: bytes that are not UTF-8 become U+FFFD,
// and the cut falls between two characters.
std::string CleanText(std::string_view text, size_t limit = kMaxWireString);

}  // namespace lull
