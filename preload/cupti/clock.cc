#include "preload/cupti/clock.h"

#include "preload/support/clock.h"

namespace lull::cupti {
namespace {

constexpr int64_t kNativeWithinNs = 1'000'000'000;
// Times just after the newest sample, or before the oldest, go on at its rate.
constexpr uint64_t kBeyondNs = 2'000'000'000;
// Sampling itself is off by the time between its clock reads; slewing (adjtime)
// changes the rate by 500 ppm at most.
constexpr int64_t kStepNs = 20'000;
constexpr uint64_t kSlewPart = 1000;
constexpr int kTries = 3;
constexpr uint64_t kGoodBracketNs = 5'000;

uint64_t realtime_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000u +
         static_cast<uint64_t>(now.tv_nsec);
}

int64_t offset_of(const ClockSample& sample) {
  return static_cast<int64_t>(sample.trace - sample.monotonic);
}

uint64_t magnitude(int64_t value) {
  return value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
}

// left.monotonic + (trace - left.trace) at the rate between the two.
uint64_t interpolate(const ClockSample& left, const ClockSample& right,
                     uint64_t trace) {
  auto elapsed = static_cast<__int128>(right.monotonic - left.monotonic);
  auto traced = static_cast<__int128>(right.trace - left.trace);
  auto since = static_cast<__int128>(static_cast<int64_t>(trace - left.trace));
  return left.monotonic + static_cast<uint64_t>(since * elapsed / traced);
}

// CLOCK_REALTIME without a step. Slewing moves it too, slowly.
bool is_even(const ClockSample& left, const ClockSample& right) {
  uint64_t moved = magnitude(offset_of(right) - offset_of(left));
  return moved <= kStepNs + (right.monotonic - left.monotonic) / kSlewPart;
}

bool same_rate(const ClockSample* left, const ClockSample* right) {
  auto product = [](uint64_t a, uint64_t b) { return static_cast<__int128>(a) * b; };
  __int128 one =
      product(left[1].trace - left[0].trace, right[1].monotonic - right[0].monotonic);
  __int128 other =
      product(right[1].trace - right[0].trace, left[1].monotonic - left[0].monotonic);
  __int128 difference = one > other ? one - other : other - one;
  return difference <= one / kSlewPart;
}

bool within(uint64_t value, uint64_t first, uint64_t last) {
  return value >= first && value <= last;
}

}  // namespace

bool is_native(const ClockSample& sample) {
  auto difference = static_cast<int64_t>(sample.trace - sample.realtime);
  return difference > -kNativeWithinNs && difference < kNativeWithinNs;
}

struct ClockView::Candidates {
  uint64_t not_before, not_after;
  uint64_t chosen;
  uint32_t count = 0;     // different ones
  uint32_t in_range = 0;  // of them

  void add(uint64_t monotonic) {
    constexpr uint64_t kSameNs = 2;  // the ends of neighbouring stretches
    if (count > 0 && magnitude(static_cast<int64_t>(monotonic - chosen)) <= kSameNs) {
      return;
    }
    bool fits = within(monotonic, not_before, not_after);
    if (count == 0 || (fits && in_range == 0)) chosen = monotonic;
    ++count;
    if (fits) ++in_range;
  }
  bool decided() const { return count == 1 || in_range == 1; }
};

void ClockView::add(const ClockSample& sample) {
  if (count_ == kClockSamples) return;
  uint32_t at = count_++;
  for (; at > 0 && samples_[at - 1].monotonic > sample.monotonic; --at) {
    samples_[at] = samples_[at - 1];
  }
  samples_[at] = sample;
}

// Another clock than CLOCK_REALTIME is known by its rate alone: a stretch must have
// that of the one before or after it, unless it is the only one.
bool ClockView::has_rate(uint32_t stretch) const {
  const ClockSample* at = samples_ + stretch;
  auto is_foreign_stretch = [](const ClockSample* s) {
    return !is_native(s[0]) && !is_native(s[1]) && s[1].trace > s[0].trace;
  };
  if (is_native(at[0]) != is_native(at[1]) || at[1].trace <= at[0].trace) return false;
  if (is_native(at[0])) return is_even(at[0], at[1]);
  bool before = stretch > 0 && is_foreign_stretch(at - 1);
  bool after = stretch + 2 < count_ && is_foreign_stretch(at + 1);
  return (before && same_rate(at - 1, at)) || (after && same_rate(at, at + 1)) ||
         (!before && !after);
}

void ClockView::finish() {
  uint32_t kept = 0;  // two threads may have sampled in the same nanosecond
  for (uint32_t i = 0; i < count_; ++i) {
    if (kept > 0 && samples_[kept - 1].monotonic == samples_[i].monotonic) continue;
    samples_[kept++] = samples_[i];
  }
  count_ = kept;
  steady_ = count_ > 1;
  for (uint32_t i = 0; i + 1 < count_; ++i) {
    rated_[i] = has_rate(i);
    steady_ = steady_ && rated_[i];
  }
}

// What `trace` is if the clock ran on from sample `at` (or up to it) as it did in
// `stretch` beside it. False: nobody knows how it ran.
bool ClockView::run_on(uint32_t at, uint32_t stretch, uint64_t trace,
                       uint64_t* monotonic) const {
  if (stretch < count_ && stretch + 1 < count_ && rated_[stretch]) {
    *monotonic = interpolate(samples_[stretch], samples_[stretch + 1], trace);
    return true;
  }
  *monotonic = trace - static_cast<uint64_t>(offset_of(samples_[at]));
  return is_native(samples_[at]);
}

bool ClockView::convert_steady(uint64_t trace, uint64_t* monotonic) const {
  if (trace + kBeyondNs < samples_[0].trace ||
      trace > samples_[count_ - 1].trace + kBeyondNs) {
    return false;
  }
  uint32_t low = 0, high = count_ - 1;  // the stretch that holds it, or the nearest
  while (high - low > 1) {
    uint32_t middle = (low + high) / 2;
    (samples_[middle].trace <= trace ? low : high) = middle;
  }
  *monotonic = interpolate(samples_[low], samples_[high], trace);
  return true;
}

// All moments at which the clock may have shown `trace`.
void ClockView::collect(uint64_t trace, Candidates* found) const {
  uint64_t moment;
  for (uint32_t i = 0; i + 1 < count_; ++i) {
    const ClockSample& left = samples_[i];
    const ClockSample& right = samples_[i + 1];
    if (rated_[i]) {
      if (within(trace, left.trace, right.trace)) {
        found->add(interpolate(left, right, trace));
      }
      continue;
    }
    if (run_on(i, i - 1, trace, &moment) &&
        within(moment, left.monotonic, right.monotonic)) {
      found->add(moment);
    }
    if (run_on(i + 1, i + 1, trace, &moment) &&
        within(moment, left.monotonic, right.monotonic)) {
      found->add(moment);
    }
  }
  uint32_t last = count_ - 1;
  if (run_on(last, last - 1, trace, &moment) &&
      within(moment, samples_[last].monotonic, samples_[last].monotonic + kBeyondNs)) {
    found->add(moment);
  }
  if (run_on(0, 0, trace, &moment) && moment <= samples_[0].monotonic &&
      moment + kBeyondNs >= samples_[0].monotonic) {
    found->add(moment);
  }
}

bool ClockView::convert(uint64_t trace, uint64_t not_before, uint64_t not_after,
                        uint64_t* monotonic) const {
  if (count_ == 0) return false;
  if (steady_) return convert_steady(trace, monotonic);
  Candidates found{not_before, not_after, 0};
  collect(trace, &found);
  *monotonic = found.chosen;
  return found.decided();
}

bool ClockView::goes_on() const {
  if (count_ == 0) return false;
  return is_native(samples_[count_ - 1]) || (count_ > 1 && rated_[count_ - 2]);
}

bool ClockSamples::go_on() const {
  if (!is_foreign()) return true;
  ClockView view;
  copy(&view);
  return view.goes_on();
}

bool ClockSamples::take(const Api& api, bool now) {
  uint64_t last = last_ns_.load(std::memory_order_relaxed);
  uint64_t start = monotonic_ns();
  if (!now && last != 0 && start < last + kSamplePeriodNs) return true;
  if (!now && !last_ns_.compare_exchange_strong(last, start)) return true;
  ClockSample best = {};
  uint64_t best_bracket = UINT64_MAX;
  for (int i = 0; i < kTries && best_bracket > kGoodBracketNs; ++i) {
    uint64_t before = monotonic_ns();
    uint64_t trace = 0;
    if (api.get_timestamp(&trace) != kSuccess) return false;
    uint64_t after = monotonic_ns();
    if (after - before >= best_bracket) continue;
    best_bracket = after - before;
    best = {before + (after - before) / 2, trace, realtime_ns()};
  }
  last_ns_.store(best.monotonic, std::memory_order_relaxed);
  add(best);
  return true;
}

void ClockSamples::add(const ClockSample& sample) {
  foreign_.store(!is_native(sample), std::memory_order_relaxed);
  uint64_t position = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[position % kClockSamples];
  uint64_t turn = slot.turn.load(std::memory_order_relaxed);
  // Odd: whoever came a whole round earlier is still writing. Theirs will do.
  if (turn % 2 == 1 ||
      !slot.turn.compare_exchange_strong(turn, turn + 1, std::memory_order_acquire)) {
    return;
  }
  // Released, so that whoever sees one of them sees the odd turn too.
  slot.monotonic.store(sample.monotonic, std::memory_order_release);
  slot.trace.store(sample.trace, std::memory_order_release);
  slot.realtime.store(sample.realtime, std::memory_order_release);
  slot.turn.store(turn + 2, std::memory_order_release);  // pairs with copy()
}

void ClockSamples::copy(ClockView* view) const {
  for (const Slot& slot : slots_) {
    uint64_t turn = slot.turn.load(std::memory_order_acquire);
    if (turn == 0 || turn % 2 == 1) continue;
    ClockSample sample = {slot.monotonic.load(std::memory_order_acquire),
                          slot.trace.load(std::memory_order_acquire),
                          slot.realtime.load(std::memory_order_acquire)};
    if (slot.turn.load(std::memory_order_relaxed) == turn) view->add(sample);
  }
  view->finish();
}

}  // namespace lull::cupti
