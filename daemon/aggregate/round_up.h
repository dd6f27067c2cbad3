#pragma once

#include <cstdint>

namespace lull::aggregate {

// The least multiple of `unit` (not 0) that is no less than `value`.
inline uint64_t RoundUp(uint64_t value, uint64_t unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace lull::aggregate
