#include "daemon/relay/control/wall_cost.h"

#include <algorithm>
#include <optional>

#include "daemon/relay/control/gpu_schedule.h"

namespace lull::relay {
namespace {

steps::TracingIs StateOf(abi::TracingState state) {
  switch (state) {
    case abi::TracingState::kWarmUp:
    case abi::TracingState::kActive:
      return steps::TracingIs::kOn;
    case abi::TracingState::kYielded:
      return steps::TracingIs::kAnothers;
    default:
      return steps::TracingIs::kOff;
  }
}

template <typename T>
void DropFront(size_t count, std::vector<T>* from) {
  from->erase(from->begin(), from->begin() + static_cast<ptrdiff_t>(count));
}

}  // namespace

void WallCost::AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns) {
  // The program's words: what cannot be is no step.
  if (end_ns <= start_ns || end_ns - start_ns > GpuSchedule::kLongestStepNs) return;
  if (!steps_.empty() && start_ns < steps_.back().end_ns) return;
  steps_.push_back({number, start_ns, end_ns});
  if (steps_.size() >= next_judging_) Judge();
}

void WallCost::AddTracing(uint64_t time_ns, abi::TracingState state) {
  if (!changes_.empty() && time_ns < changes_.back().time_ns) return;
  changes_.push_back({time_ns, StateOf(state)});
  if (changes_.size() > kMostChanges) DropFront(kMostChanges / 2, &changes_);
}

void WallCost::Judge() {
  const std::vector<steps::Condition> conditions =
      steps::ConditionsOf(steps_, changes_);
  size_t judged = 0;
  for (const steps::JudgedWindow& window : steps::JudgeWindows(steps_, conditions)) {
    if (window.last + steps::kReach > steps_.size()) break;  // neighbours are to come
    added_ns_.push_back(window.added_ns);
    ++uncharged_;
    judged = window.last;
  }
  if (judged != 0) Charge();
  // Of what is not traced, the neighbours of the next window are enough.
  const auto next = std::find_if(conditions.begin() + static_cast<ptrdiff_t>(judged),
                                 conditions.end(), [](steps::Condition condition) {
                                   return condition != steps::Condition::kUntraced;
                                 });
  const auto until_next = static_cast<size_t>(next - conditions.begin());
  size_t done = std::max(judged, until_next - std::min(until_next, steps::kReach));
  if (steps_.size() - done > kMostSteps) done = steps_.size() - kMostSteps / 2;
  Forget(done);
  next_judging_ = steps_.size() + steps::kReach;
}

void WallCost::Charge() {
  if (added_ns_.size() > kMostWindows) {
    DropFront(added_ns_.size() - kMostWindows, &added_ns_);
  }
  const std::optional<steps::Estimate> of_one = steps::MedianOf(added_ns_);
  if (!of_one || of_one->low <= 0) return;
  total_ns_ += static_cast<uint64_t>(of_one->low * static_cast<double>(uncharged_));
  uncharged_ = 0;
}

void WallCost::Forget(size_t steps) {
  if (steps == 0) return;
  DropFront(steps, &steps_);
  if (steps_.empty()) return;
  // The last change before tells what holds.
  size_t past = 0;
  while (past + 1 < changes_.size() &&
         changes_[past + 1].time_ns <= steps_.front().start_ns) {
    ++past;
  }
  DropFront(past, &changes_);
}

}  // namespace lull::relay
