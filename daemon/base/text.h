// Text from elsewhere (file names, command lines, symbols) made fit for protobuf.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace lull {

inline bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

// Limits of the wire, see proto/events.proto: what a relay sends keeps to them, and a
// collector takes nothing beyond them. Bytes of any string:
inline constexpr size_t kMaxWireString = 4096;
// The largest time, position or total.
inline constexpr uint64_t kMaxWireTotal = INT64_MAX;
// Ordinals of a process's GPUs are below it; the driver's own limit is 64.
inline constexpr uint32_t kMaxWireDevices = 1024;
// The most entries in a list of an ImportInfo.
inline constexpr int kMaxImportLines = 256;

// Valid UTF-8 of at most `limit` bytes: bytes that are not UTF-8 become U+FFFD,
// and the cut falls between two characters.
std::string CleanText(std::string_view text, size_t limit = kMaxWireString);

}  // namespace lull
