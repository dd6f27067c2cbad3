// Samples of host threads: which properties tell their series apart, and what weights
// are for.
//
// A sample stands for `weight` ns of the thread's time, 1 / rate when it was due. Where
// the rate changes, samples weigh differently, and what n equal ones would say comes
// from the sum of the squares: n = (sum of w)^2 / sum of w^2.
//
// An imported trace may say where a thread was at each instant. Such samples have a
// duration, which is their weight, and no square: shares of them are exact.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/aggregate/cell.h"
#include "daemon/aggregate/series.h"

namespace lull::aggregate {

// Values equal those of lull.v1.HostSampleState, ...Quality and ...Role.
enum class SampleState : uint8_t { kRunning = 0, kReady = 1, kBlocked = 2 };
enum class SampleQuality : uint8_t {
  kExact = 0,
  kHeld = 1,
  kCut = 2,
  kNoState = 3,
  kFailed = 4,
};
enum class SampleRole : uint8_t {
  kMain = 0,
  kFeeder = 1,
  kAutograd = 2,
  kLoader = 3,
  kOther = 4,
};
inline constexpr uint32_t kSampleRoles = 5;

// State, quality and role of a sample in eight bits. A value of a newer relay that we
// do not know becomes the weakest one: a thread of another kind, a stack that could not
// be read. An unknown state becomes none of the three.
inline uint8_t SampleVariant(const Event& event) {
  const SampleView sample{event};
  const uint32_t state = std::min(sample.state(), 3u);
  const uint32_t quality = std::min(sample.quality(), 4u);
  const uint32_t role = std::min(sample.role(), 4u);
  return static_cast<uint8_t>(role << 5 | state << 3 | quality);
}
inline SampleRole RoleOf(const Series& sample) {
  return static_cast<SampleRole>(sample.variant >> 5);
}
inline SampleState StateOf(const Series& sample) {
  return static_cast<SampleState>(sample.variant >> 3 & 3);
}
inline SampleQuality QualityOf(const Series& sample) {
  return static_cast<SampleQuality>(sample.variant & 7);
}
// If another sample has a stack, it means nothing.
inline bool HasStack(SampleQuality quality) { return quality <= SampleQuality::kCut; }

// In square microseconds, so that years of samples fit.
inline uint64_t SquareOfWeight(uint64_t weight_ns) {
  uint64_t us = weight_ns / 1000;
  return us * us;
}

// Samples added up. Cells of their series have the same three sums.
struct Sampled {
  uint64_t samples = 0;
  uint64_t time_ns = 0;    // of threads, added up
  uint64_t square_us = 0;  // sum of SquareOfWeight

  Sampled& operator+=(const Sampled& other) {
    samples += other.samples;
    time_ns += other.time_ns;
    square_us += other.square_us;
    return *this;
  }
};
inline Sampled SampledOf(const Cell& cell) {
  return {cell.count, cell.total_ns, cell.amount};
}

// No share is reported that rests on fewer samples than this.
inline constexpr uint64_t kEnoughSamples = 30;
// All of them are stretches: nobody takes looks that weigh less than a microsecond.
inline bool IsExact(const Sampled& whole) {
  return whole.square_us == 0 && whole.time_ns > 0;
}
inline bool IsEnough(const Sampled& whole, uint64_t samples = kEnoughSamples) {
  return whole.samples >= samples || IsExact(whole);
}

// `part` of `whole` with the 95 % interval of Wilson, in percent. All 0 of nothing.
struct Share {
  double percent = 0;
  double low = 0;
  double high = 0;
};
Share ShareOf(const Sampled& part, const Sampled& whole);

}  // namespace lull::aggregate
