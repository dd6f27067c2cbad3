// The protocol version of everything in preload/abi/.
//
// Bump kVersion whenever a field of a shared struct moves, changes its meaning
// or its size. Appending to the end of an enum or to the hook list does not
// need a bump: readers must tolerate values that they do not know. A relay
// refuses a segment of any other version and says so.
#pragma once

#include <cstdint>

namespace lull::abi {

inline constexpr uint32_t kVersion = 13;

// "LULLSEG" and the version of the byte order.
inline constexpr uint64_t kSegmentMagic = 0x314745534c4c554cull;  // "LULLSEG1"

}  // namespace lull::abi
