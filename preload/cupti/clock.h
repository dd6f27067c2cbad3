// From CUPTI's clock to CLOCK_MONOTONIC.
//
// CUPTI stamps with CLOCK_REALTIME on Linux, which steps when somebody sets the time,
// or with whatever a timestamp callback returns that some user has registered (kineto
// takes the TSC), which cannot be unregistered. So the conversion believes in nothing
// but samples of both clocks, taken while tracing is on:
//
//  * Between two samples of one clock, at one rate, a time is interpolated.
//  * Where the clock was set, or exchanged, between two samples, the old one is
//    thought on from the left and the new one back from the right. A time that fits
//    but one of them is known; one that fits both is not.
//
// A time that is not known makes its record unreadable: counted, never guessed.
#pragma once

#include <atomic>
#include <cstdint>

#include "preload/cupti/types.h"

namespace lull::cupti {

// One moment on three clocks.
struct ClockSample {
  uint64_t monotonic;
  uint64_t trace;     // cuptiGetTimestamp
  uint64_t realtime;  // CLOCK_REALTIME
};

inline constexpr uint32_t kClockSamples = 256;
inline constexpr uint64_t kSamplePeriodNs = 100'000'000;  // the whole is 25 s

// CUPTI runs on CLOCK_REALTIME here; if not, on another user's timestamp callback.
bool is_native(const ClockSample& sample);

// A copy of the samples in the order of time: what one thread converts with. Pure.
class ClockView {
 public:
  ClockView() = default;

  // Samples may come in any order; those beyond the room are left out.
  void add(const ClockSample& sample);
  void finish();  // after the last add()

  // *monotonic for the CUPTI time `trace`, or false: not known. Where a time would
  // fit twice, the one in [not_before, not_after] is meant.
  bool convert(uint64_t trace, uint64_t not_before, uint64_t not_after,
               uint64_t* monotonic) const;

  // Times just after the newest sample can be converted. Not so with the first one of
  // another user's clock: its rate is not known.
  bool goes_on() const;

  uint32_t size() const { return count_; }

 private:
  struct Candidates;
  bool has_rate(uint32_t stretch) const;
  bool run_on(uint32_t at, uint32_t stretch, uint64_t trace, uint64_t* monotonic) const;
  bool convert_steady(uint64_t trace, uint64_t* monotonic) const;
  void collect(uint64_t trace, Candidates* found) const;

  ClockSample samples_[kClockSamples];
  bool rated_[kClockSamples];  // from this sample to the next: one clock, one rate
  uint32_t count_ = 0;
  bool steady_ = false;  // one clock, no step: every time fits once
};

// The samples themselves. Any thread adds and copies, without locks.
class ClockSamples {
 public:
  // Takes a sample unless the last one is younger than kSamplePeriodNs, or in any
  // case with `now`. False if CUPTI did not answer.
  bool take(const Api& api, bool now);

  void add(const ClockSample& sample);
  void copy(ClockView* view) const;
  // Times from the newest sample on will be readable: ClockView::goes_on().
  bool go_on() const;
  // The newest sample was not CLOCK_REALTIME.
  bool is_foreign() const { return foreign_.load(std::memory_order_relaxed); }

 private:
  // A sequence lock each: `turn` is odd while the slot is being written.
  struct Slot {
    std::atomic<uint64_t> turn{0};
    std::atomic<uint64_t> monotonic{0};
    std::atomic<uint64_t> trace{0};
    std::atomic<uint64_t> realtime{0};
  };
  Slot slots_[kClockSamples];
  std::atomic<uint64_t> next_{0};
  std::atomic<uint64_t> last_ns_{0};
  std::atomic<bool> foreign_{false};
};

}  // namespace lull::cupti
