// The clock of CUPTI: CLOCK_REALTIME, or what the client's callback says.
//
// The simulated device knows CLOCK_MONOTONIC alone. Its times are converted with the
// offset between the two as it is at the moment of the conversion, so that a step of
// the wall clock appears in later records, of earlier operations too.
#pragma once

#include <atomic>
#include <cstdint>

namespace lull::sim::cupti {

using TimestampCallback = uint64_t (*)();

class TraceClock {
 public:
  // What cuptiGetTimestamp returns.
  uint64_t now() const;

  // Null: the wall clock again.
  void set_callback(TimestampCallback callback);

  // Looks at the clocks. Conversions until the next look agree with each other.
  void look();

  // A CLOCK_MONOTONIC time as records have it. 0 (unknown) stays 0.
  uint64_t convert(int64_t monotonic_ns) const;

 private:
  std::atomic<TimestampCallback> callback_{nullptr};
  int64_t offset_ns_ = 0;  // of the wall clock; from the last look
  int64_t looked_ns_ = 0;
  // With a callback: its value at two moments; the line through them converts.
  int64_t first_ns_ = 0, last_ns_ = 0;
  uint64_t first_value_ = 0, last_value_ = 0;
};

}  // namespace lull::sim::cupti
