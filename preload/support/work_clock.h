// How long somebody has been at work who cannot ask how much of a processor it had:
// that is a system call, which costs a thread that is traced 26 us and two places in
// the queue. It looks at the clock every few microseconds instead, and what lies
// between two looks counts for no more than kMostBetweenLooksNs: beyond that it has
// waited.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lull {

class WorkClock {
 public:
  static constexpr uint64_t kMostBetweenLooksNs = 100'000;
  // Waiting included: who waits for its pages, not for a processor, ends, too.
  static constexpr uint64_t kLongestNs = 20'000'000;
  static constexpr uint64_t kNoEnd = UINT64_MAX;

  WorkClock(uint64_t now_ns, uint64_t budget_ns)
      : begin_ns_(now_ns),
        last_ns_(now_ns),
        left_ns_(budget_ns),
        longest_ns_(budget_ns == kNoEnd ? kNoEnd : kLongestNs) {}

  // A look. True from the moment on at which the budget has been worked.
  bool is_over(uint64_t now_ns) {
    uint64_t worked = std::min(now_ns - last_ns_, kMostBetweenLooksNs);
    last_ns_ = now_ns;
    left_ns_ -= std::min(left_ns_, worked);
    return left_ns_ == 0 || now_ns - begin_ns_ >= longest_ns_;
  }

 private:
  uint64_t begin_ns_;
  uint64_t last_ns_;
  uint64_t left_ns_;
  uint64_t longest_ns_;
};

}  // namespace lull
