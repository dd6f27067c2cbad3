// Durations in nanoseconds, for tests.
#pragma once

#include <cstdint>

namespace lull {

inline constexpr uint64_t kUs = 1'000;
inline constexpr uint64_t kMs = 1'000 * kUs;
inline constexpr uint64_t kSecond = 1'000 * kMs;

}  // namespace lull
