// How long the steps of a process take, which tells whether it is among them: an
// evaluation, or whatever else goes on after the last one, is longer than any.
//
// Pure: no clock. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <algorithm>
#include <cstdint>

#include "daemon/steps/step_cost.h"

namespace lull::relay {

class Pace {
 public:
  // In the order of time. A step far longer than the one before contains something
  // else; the second of them in a row is how long they are.
  void AddStep(const steps::TimedStep& step) {
    if (step.end_ns <= step.start_ns) return;  // no step of ours
    const uint64_t length = step.end_ns - step.start_ns;
    const bool far_longer = length_ns_ != 0 && length > Longest();
    if (!far_longer) before_ns_ = length_ns_;
    if (!far_longer || was_far_longer_) length_ns_ = length;
    far_longer_ += far_longer ? 1 : 0;
    was_far_longer_ = far_longer;
    end_ns_ = std::max(end_ns_, step.end_ns);
  }

  // Of the last two the longer one. 0: there was none.
  uint64_t length_ns() const { return std::max(length_ns_, before_ns_); }
  uint64_t end_ns() const { return end_ns_; }  // of the last one
  // So many contained something else.
  uint64_t far_longer() const { return far_longer_; }
  // By then the next one has ended, if there is one. 0: there was none.
  uint64_t NextUntil() const { return length_ns_ == 0 ? 0 : end_ns_ + Longest(); }

 private:
  static constexpr uint64_t kTimesLonger = 8;
  static constexpr uint64_t kLongerByNs = 1'000'000'000;
  static constexpr uint64_t kMostNs = uint64_t{24} * 3600 * kLongerByNs;

  uint64_t Longest() const {
    return kTimesLonger * std::min(length_ns_, kMostNs) + kLongerByNs;
  }

  uint64_t length_ns_ = 0, before_ns_ = 0;
  bool was_far_longer_ = false;
  uint64_t end_ns_ = 0;
  uint64_t far_longer_ = 0;
};

}  // namespace lull::relay
