// Which small blocks of memory are told, of all that a thread allocates: drawn by their
// bytes, as heap profilers do it. Byte for byte the distance to the next draw is
// exponential, so that a block of s bytes is drawn with the probability
// 1 - exp(-s / kDrawnMeanBytes), whatever came before it.
//
// Integers alone: neither libm nor the floating-point environment is touched.
#pragma once

#include <cstdint>

#include "preload/abi/segment.h"

namespace lull {

// All zero: not seeded, and says so by drawing nothing but asking for a seed.
class DrawnBlocks {
 public:
  bool is_seeded() const { return until_ != 0; }
  void seed(uint64_t value) {
    state_ = value;
    until_ = distance();
  }

  // Once for each small block, after seed().
  bool draws(uint64_t bytes) {
    if (__builtin_expect(bytes < until_, 1)) {
      until_ -= bytes;
      return false;
    }
    until_ = distance();
    return true;
  }

 private:
  // SplitMix64.
  uint64_t random() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  // The first byte, counted from 1, that is drawn: -ln(u) * mean, rounded up.
  __attribute__((cold, noinline)) uint64_t distance() {
    constexpr uint64_t kLn2 = 2977044472;  // * 2^32
    return ((minus_log2(random() | 1) * kLn2 >> 32) * abi::kDrawnMeanBytes >> kBits) +
           1;
  }

  static constexpr int kBits = 24;
  // -log2(u / 2^64) * 2^kBits, bit by bit: squaring doubles the logarithm.
  static uint64_t minus_log2(uint64_t u) {
    int zeros = __builtin_clzll(u);
    uint64_t x = u << zeros;  // from 1 to 2, with 63 bits behind the point
    uint64_t fraction = 0;
    for (int bit = kBits - 1; bit >= 0; --bit) {
      unsigned __int128 square = static_cast<unsigned __int128>(x) * x >> 63;
      bool is_two_or_more = square >> 64 != 0;
      x = static_cast<uint64_t>(is_two_or_more ? square >> 1 : square);
      fraction |= uint64_t{is_two_or_more} << bit;
    }
    return (static_cast<uint64_t>(zeros + 1) << kBits) - fraction;
  }

  uint64_t state_;
  uint64_t until_;  // bytes
};

}  // namespace lull
