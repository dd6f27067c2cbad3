// What a small block stands for that was drawn among all of its thread.
//
// Of blocks under kSmallBytes some are told with their stack, drawn by their bytes: one
// of s bytes with the probability p = 1 - exp(-s / kDrawnMeanBytes)
// (preload/support/drawn_blocks.h). It stands for 1 / p blocks and s / p bytes, which
// sum up to what there was without a bias, however often a line allocates and what.
#pragma once

#include <cmath>
#include <cstdint>

namespace lull::aggregate {

inline constexpr uint64_t kSmallBytes = 64 << 10;
inline constexpr uint64_t kDrawnMeanBytes = 512 << 10;
// Of one block, in which drawn ones are counted.
inline constexpr uint64_t kBlockParts = 1024;

struct DrawnWeight {
  uint64_t bytes = 0;
  uint64_t parts = 0;  // 1 / kBlockParts of a block
};
inline DrawnWeight WeightOfDrawn(uint64_t bytes) {
  if (bytes == 0) return {};
  if (bytes > 64 * kDrawnMeanBytes) return {bytes, kBlockParts};  // nobody's, but sound
  const auto size = static_cast<double>(bytes);
  const double times = -1 / std::expm1(-size / static_cast<double>(kDrawnMeanBytes));
  return {static_cast<uint64_t>(std::llround(size * times)),
          static_cast<uint64_t>(std::llround(kBlockParts * times))};
}

// Half of the 95 % interval of a sum of such weights, in bytes. A block adds the
// variance s^2 (1 - p) / p^2, which is its weight times s (1 - p) / p: at most
// kDrawnMeanBytes, and for the largest of them 6 % less.
//
// That variance is of what there was, of which there may be more than its estimate: so
// the interval reaches to the truth that this estimate would be just as far below
// (Wilson's). With 1.96 times the root of the estimate's own variance, one or two drawn
// blocks seemed to be so sure that 16 of 100 such lines had more, and none to be
// certain.
inline uint64_t ErrorOfDrawn(uint64_t bytes) {
  constexpr double kTimes = 1.96;
  constexpr double kMean = kDrawnMeanBytes;
  constexpr double kHalf = kTimes * kTimes * kMean / 2;
  return static_cast<uint64_t>(std::llround(
      kHalf +
      std::sqrt(kHalf * kHalf + kTimes * kTimes * kMean * static_cast<double>(bytes))));
}

}  // namespace lull::aggregate
