#include "tests/sim/cupti/trace_clock.h"

#include <cmath>
#include <cstdlib>

#include "tests/sim/cupti/link.h"
#include "tests/sim/cupti/settings.h"
#include "tests/sim/engine/clock.h"

namespace lull::sim::cupti {
namespace {

// Reading two clocks is not exact. Offsets this close are the same one, so that times
// of one stretch fit together to the nanosecond; what drifts away is caught later.
constexpr int64_t kSameOffsetNs = 5'000;
constexpr int64_t kOffsetLifeNs = 1'000'000'000;
// The callback's rate is measured over at least this long.
constexpr int64_t kRateSpanNs = 1'000'000;

int64_t step_ns() {
  const Settings& s = settings();
  int64_t step = s.step_at_ns != 0 && now_ns() >= s.step_at_ns ? s.step_ns : 0;
  const Driver* driver = load_driver();
  return step + (driver != nullptr ? driver->clock_step_ns() : 0);
}

int64_t wall_ns() {
  timespec ts;
  clock_gettime(CLOCK_REALTIME, &ts);
  return int64_t{ts.tv_sec} * 1'000'000'000 + ts.tv_nsec;
}

// The best of some readings: between two clocks the thread may lose its core.
int64_t wall_offset() {
  constexpr int kReadings = 8;
  constexpr int64_t kGoodNs = 500;
  int64_t offset = 0, uncertainty = INT64_MAX;
  for (int i = 0; i < kReadings && uncertainty > kGoodNs; ++i) {
    int64_t before = now_ns();
    int64_t wall = wall_ns();
    int64_t after = now_ns();
    if (after - before >= uncertainty) continue;
    uncertainty = after - before;
    offset = wall - before - uncertainty / 2;
  }
  return offset + step_ns();
}

}  // namespace

uint64_t TraceClock::now() const {
  TimestampCallback callback = callback_;
  if (callback != nullptr) return callback();
  return static_cast<uint64_t>(wall_ns() + step_ns());
}

void TraceClock::set_callback(TimestampCallback callback) {
  callback_ = callback;
  if (callback == nullptr) return;
  first_ns_ = last_ns_ = now_ns();
  first_value_ = last_value_ = callback();
}

void TraceClock::look() {
  if (callback_ != nullptr) {
    // A line needs two points: the second a while after the first.
    if (last_ns_ == first_ns_) spin_until(first_ns_ + kRateSpanNs);
    last_ns_ = now_ns();
    last_value_ = callback_.load()();
    return;
  }
  int64_t now = now_ns();
  int64_t offset = wall_offset();
  bool same = llabs(offset - offset_ns_) < kSameOffsetNs;
  if (same && now - looked_ns_ < kOffsetLifeNs) return;
  offset_ns_ = offset;
  looked_ns_ = now;
}

uint64_t TraceClock::convert(int64_t monotonic_ns) const {
  if (monotonic_ns == 0) return 0;
  if (callback_ == nullptr) return static_cast<uint64_t>(monotonic_ns + offset_ns_);
  double rate = static_cast<double>(last_value_ - first_value_) /
                static_cast<double>(last_ns_ - first_ns_);
  double ticks = static_cast<double>(monotonic_ns - first_ns_) * rate;
  return first_value_ + static_cast<uint64_t>(llround(ticks));
}

}  // namespace lull::sim::cupti
