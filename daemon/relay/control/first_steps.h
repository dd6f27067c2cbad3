// What hooks take of the first steps of a watch. It may be over after seconds, and where
// they show that it would be far over its budget, some of them are recorded from then on
// (step_share.h) without a look at what less detail would do.
//
// The first steps of all say nothing: the first look at each line takes longer. Steps
// of which few end between two looks are few in a watch, too: they are judged by less
// detail first (least_detail.h), as those with waits between them are.
//
// Pure: no clock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "daemon/relay/control/least_detail.h"

namespace lull::relay {

class FirstSteps {
 public:
  static constexpr uint64_t kSpanNs = 200'000'000;  // and no less than
  static constexpr uint64_t kSteps = 8;
  static constexpr uint64_t kInALook = 3;

  // In the order of time, `steps` as they are at its end. What hooks take while the GPU
  // is traced says nothing of the other steps.
  void Add(const HooksLook& look, const LeastDetail::Steps& steps, bool traced) {
    if (share_ > 0) return;
    const uint64_t before = std::exchange(end_ns_, steps.end_ns);
    if (steps.length_ns == 0 || steps.end_ns == before ||
        kInALook * steps.length_ns > look.ns) {
      span_ = {};
      return;
    }
    if (traced) return;
    least_ = std::min(span_.ns == 0 ? look.share() : least_, look.share());
    span_.Add(look);
    if (span_.ns < std::max(kSpanNs, kSteps * steps.length_ns)) return;
    if (warm_) share_ = least_;
    warm_ = true;
    span_ = {};
  }

  // Of all time, in the cheapest of the looks: a hook that was interrupted makes one
  // dear. 0: not known.
  double share() const { return share_; }

 private:
  HooksLook span_;
  double least_ = 0;  // share of one of its looks
  uint64_t end_ns_ = 0;
  bool warm_ = false;
  double share_ = 0;
};

}  // namespace lull::relay
