// Arithmetic on times that may be anything: it stops at the ends instead of wrapping.
#pragma once

#include <cstdint>

namespace lull::blame {

inline constexpr uint64_t kNever = UINT64_MAX;
// Times that come in are cut here, so that all of them lie before kNever.
inline constexpr uint64_t kLastInstant = INT64_MAX;

constexpr uint64_t Plus(uint64_t time, uint64_t span) {
  return time > kNever - span ? kNever : time + span;
}

constexpr uint64_t Minus(uint64_t time, uint64_t span) {
  return time > span ? time - span : 0;
}

// Makes a span of what came in: in range, and not ending before it starts.
template <typename T>
T Sound(T item) {
  if (item.start_ns > kLastInstant) item.start_ns = kLastInstant;
  if (item.end_ns > kLastInstant) item.end_ns = kLastInstant;
  if (item.end_ns < item.start_ns) item.end_ns = item.start_ns;
  return item;
}

}  // namespace lull::blame
