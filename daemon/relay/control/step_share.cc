#include "daemon/relay/control/step_share.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "preload/abi/segment.h"

namespace lull::relay {

StepShare::StepShare(double budget_percent, uint32_t halvings)
    : budget_(budget_percent / 100),
      halvings_(std::min(halvings, abi::kMostHalvings)) {}

uint32_t StepShare::HalvingsAtOnce(double share, double budget_percent) {
  // Each step costs a little that rests.
  const double halvings = std::ceil(std::log2(100 * share / (0.75 * budget_percent)));
  return static_cast<uint32_t>(
      std::clamp(halvings, 1.0 * kHalvingsAtOnce, 1.0 * kMostAtOnce));
}

void StepShare::AddStep(const steps::TimedStep& step) {
  step_ns_ = std::max(step_ns_, step.end_ns);
  pace_.AddStep(step);
  if (step.rested_ns != 0) {
    since_rest_ = 0;
    rested_ns_ = std::max(rested_ns_, step.end_ns);
  } else {
    ++recorded_;
    ++since_rest_;
  }
}

void StepShare::Update(uint64_t now_ns, uint64_t cost_ns) {
  if (budget_ <= 0) return;
  const bool stands_still = !InCharge(now_ns) || now_ns >= pace_.NextUntil();
  const bool new_step = std::exchange(looked_step_ns_, step_ns_) != step_ns_;
  if (since_ns_ == 0) {
    Begin(now_ns, cost_ns);
  } else if (stands_still) {
    since_ns_ += now_ns - last_ns_;
    cost_then_ns_ += cost_ns - std::min(cost_ns, last_cost_ns_);
    recorded_then_ += recorded_ - last_recorded_;
  }
  if (new_step || stands_still || last_ns_ == 0) {
    last_ns_ = now_ns;
    last_cost_ns_ = cost_ns;
    last_recorded_ = recorded_;
  }
  if (stands_still) return;
  if (now_ns <= since_ns_) {  // what is told until then is of before
    cost_then_ns_ = cost_ns;
    recorded_then_ = recorded_;
    return;
  }
  if (!new_step) return;  // it may be an evaluation that goes on
  const uint64_t elapsed = now_ns - since_ns_;
  const uint64_t steps = recorded_ - recorded_then_;
  if (elapsed < kShortestNs || steps < kFewestSteps) return;
  const double share = static_cast<double>(cost_ns - std::min(cost_ns, cost_then_ns_)) /
                       static_cast<double>(elapsed);
  // Of few steps the mean is off by where it begins and ends.
  if (share > budget_ * (steps < kCalmSteps ? kClearlyOver : 1)) {
    const auto more = static_cast<uint32_t>(
        std::min(std::ceil(std::log2(share / budget_)), 1.0 * abi::kMostHalvings));
    was_over_ = true;
    Set(halvings_ + std::max(more, 1u), now_ns);
  } else if (!was_over_ && halvings_ > 0 &&
             share * (1 << halvings_) < kCalmShare * budget_) {
    Set(0, now_ns);  // all of them would cost as little
  } else if (steps >= kCalmSteps && share < kCalmShare * budget_ && halvings_ > 0) {
    Set(halvings_ - 1, now_ns);
  } else if (elapsed > kLongestNs && steps >= kCalmSteps) {
    Begin(now_ns, cost_ns);
  }
}

void StepShare::Begin(uint64_t at_ns, uint64_t cost_ns) {
  since_ns_ = at_ns;
  cost_then_ns_ = cost_ns;
  recorded_then_ = recorded_;
}

void StepShare::Set(uint32_t halvings, uint64_t now_ns) {
  halvings_ = std::min(halvings, abi::kMostHalvings);
  since_ns_ = now_ns + kSettleNs;
}

}  // namespace lull::relay
