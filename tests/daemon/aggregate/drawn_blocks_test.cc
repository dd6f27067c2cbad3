// The weights of drawn blocks, against the shim's own draws.
#include "daemon/aggregate/drawn_blocks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "preload/support/drawn_blocks.h"

namespace lull::aggregate {
namespace {

constexpr double kMean = kDrawnMeanBytes;

lull::DrawnBlocks Seeded(uint64_t seed) {
  lull::DrawnBlocks drawn{};
  drawn.seed(seed);
  return drawn;
}

TEST(DrawnBlocks, AreDrawnAsOftenAsTheirWeightsSay) {
  lull::DrawnBlocks drawn = Seeded(1);
  for (uint64_t bytes : {1u, 512u, 4096u, 16384u, 65535u}) {
    const double p = -std::expm1(-static_cast<double>(bytes) / kMean);
    const double blocks = std::min(20'000 / p, 5e7);
    uint64_t found = 0;
    for (double i = 0; i < blocks; ++i) found += drawn.draws(bytes) ? 1 : 0;
    const double want = blocks * p;
    EXPECT_NEAR(static_cast<double>(found), want, 4 * std::sqrt(want * (1 - p)))
        << bytes;
  }
}

TEST(DrawnBlocks, LieAtExponentialDistances) {
  // Blocks of one byte tell the distances themselves. Kolmogorov's distance of n draws
  // is under 1.95 / sqrt(n) in 999 of 1000.
  lull::DrawnBlocks drawn = Seeded(2);
  std::vector<double> distances;
  uint64_t distance = 0;
  while (distances.size() < 200) {
    ++distance;
    if (!drawn.draws(1)) continue;
    distances.push_back(static_cast<double>(distance));
    distance = 0;
  }
  std::sort(distances.begin(), distances.end());
  const auto n = static_cast<double>(distances.size());
  double worst = 0;
  for (size_t i = 0; i < distances.size(); ++i) {
    const double p = -std::expm1(-distances[i] / kMean);
    worst = std::max({worst, std::abs(p - static_cast<double>(i) / n),
                      std::abs(p - static_cast<double>(i + 1) / n)});
  }
  EXPECT_LT(worst, 1.95 / std::sqrt(n));
}

// A training of lines that allocate sizes of their own, over and over.
struct Line {
  std::vector<uint64_t> sizes;
  double bytes = 0, blocks = 0;  // in truth
  double told_bytes = 0, told_blocks = 0;
};

void Allocate(lull::DrawnBlocks& drawn, uint64_t bytes, Line& line) {
  line.bytes += static_cast<double>(bytes);
  line.blocks += 1;
  if (!drawn.draws(bytes)) return;
  const DrawnWeight weight = WeightOfDrawn(bytes);
  line.told_bytes += static_cast<double>(weight.bytes);
  line.told_blocks += static_cast<double>(weight.parts) / kBlockParts;
}

TEST(DrawnBlocks, SumUpToWhatThereWasWithoutABiasAndWithinTheirError) {
  constexpr int kTrials = 1000;
  const std::vector<std::vector<uint64_t>> kLines = {
      {512}, {16384}, {65024}, {512, 32768}, {100, 2000, 40000, 60000}};
  std::vector<double> bytes(kLines.size()), blocks(kLines.size()),
      squares(kLines.size()), truth(kLines.size()), count(kLines.size());
  std::vector<int> held(kLines.size());
  for (int trial = 0; trial < kTrials; ++trial) {
    lull::DrawnBlocks drawn = Seeded(static_cast<uint64_t>(trial) + 100);
    std::vector<Line> lines;
    for (const auto& sizes : kLines) lines.push_back({sizes});
    for (int step = 0; step < 2000; ++step) {
      for (Line& line : lines) {
        for (uint64_t size : line.sizes) {
          Allocate(drawn, size, line);
          if (size < 1000) {  // often enough to be drawn at all
            for (int i = 0; i < 20; ++i) Allocate(drawn, size, line);
          }
        }
      }
    }
    for (size_t i = 0; i < lines.size(); ++i) {
      truth[i] = lines[i].bytes;
      count[i] = lines[i].blocks;
      bytes[i] += lines[i].told_bytes / kTrials;
      blocks[i] += lines[i].told_blocks / kTrials;
      squares[i] += std::pow(lines[i].told_bytes - truth[i], 2) / kTrials;
      const auto error =
          static_cast<double>(ErrorOfDrawn(static_cast<uint64_t>(lines[i].told_bytes)));
      held[i] += std::abs(lines[i].told_bytes - truth[i]) <= error ? 1 : 0;
    }
  }
  for (size_t i = 0; i < kLines.size(); ++i) {
    SCOPED_TRACE(i);
    const double deviation = std::sqrt(truth[i] * kMean);
    EXPECT_NEAR(bytes[i], truth[i], 4 * deviation / std::sqrt(kTrials));
    EXPECT_NEAR(std::sqrt(squares[i]), deviation, 0.1 * deviation);
    // A block of s bytes stands for kMean / s of them, or a little more.
    const double least = static_cast<double>(kLines[i].front());
    EXPECT_NEAR(blocks[i], count[i], 4 * deviation / least / std::sqrt(kTrials));
    // 95 %: at least so many of 1000 in 999 of 1000 tests.
    EXPECT_GE(held[i], 927) << "of " << kTrials;
  }
}

// Lines of which few blocks are drawn, or none: those have no estimate.
TEST(DrawnBlocks, AreWithinTheirErrorWhereFewAreDrawnToo) {
  constexpr int kTrials = 4000;
  constexpr uint64_t kSize = 4096;
  for (const double draws : {0.5, 1.0, 2.0, 3.0, 4.0, 5.1, 8.0, 12.0, 20.0}) {
    const auto blocks = static_cast<int>(draws * kMean / kSize);
    int told = 0, held = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      lull::DrawnBlocks drawn = Seeded(static_cast<uint64_t>(trial) + 7'000);
      Line line;
      for (int i = 0; i < blocks; ++i) Allocate(drawn, kSize, line);
      if (line.told_bytes == 0) continue;
      ++told;
      const auto error =
          static_cast<double>(ErrorOfDrawn(static_cast<uint64_t>(line.told_bytes)));
      held += std::abs(line.told_bytes - line.bytes) <= error ? 1 : 0;
    }
    // 95 %, less four deviations of so many trials.
    EXPECT_GE(held, 0.95 * told - 4 * std::sqrt(told * 0.95 * 0.05))
        << draws << " draws, of " << told;
  }
}

TEST(DrawnBlocks, OfSizesThatNobodyDrawsAreSound) {
  EXPECT_EQ(WeightOfDrawn(0).bytes, 0u);
  EXPECT_EQ(WeightOfDrawn(UINT64_MAX).bytes, UINT64_MAX);
  EXPECT_EQ(WeightOfDrawn(UINT64_MAX).parts, kBlockParts);
  EXPECT_EQ(WeightOfDrawn(1).bytes, kDrawnMeanBytes + 1);  // 524 288.5
  // None was drawn of as many bytes in 2 of 100 lines.
  EXPECT_NEAR(static_cast<double>(ErrorOfDrawn(0)), 3.84 * kMean, 0.01 * kMean);
}

}  // namespace
}  // namespace lull::aggregate
