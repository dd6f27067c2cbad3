#include "daemon/relay/control/wall_cost.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

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

void WallCost::AddStep(const steps::TimedStep& step) {
  // The program's words: what cannot be is no step.
  if (step.end_ns <= step.start_ns) return;
  if (step.end_ns - step.start_ns > GpuSchedule::kLongestStepNs) return;
  if (!steps_.empty() && step.start_ns < steps_.back().end_ns) return;
  steps_.push_back(step);
  if (steps_.size() >= next_judging_) Judge();
}

void WallCost::AddTracing(uint64_t time_ns, abi::TracingState state) {
  const auto after = std::upper_bound(
      changes_.begin(), changes_.end(), time_ns,
      [](uint64_t at, const steps::TracingChange& one) { return at < one.time_ns; });
  changes_.insert(after, {time_ns, StateOf(state)});
  if (changes_.size() > kMostChanges) DropFront(kMostChanges / 2, &changes_);
}

void WallCost::Judge() {
  const std::vector<steps::Condition> conditions =
      steps::ConditionsOf(steps_, changes_);
  size_t judged = 0;
  for (const steps::JudgedWindow& window :
       steps::JudgeWindows(steps_, conditions, recorded_longer_)) {
    if (!AreThere(window.last, conditions)) break;
    added_ns_.push_back(window.added_ns);
    ++uncharged_;
    judged = window.last;
  }
  if (judged != 0) ChargeTracing();
  // Of what is not traced, the neighbours of the next window are enough.
  const auto next =
      std::find_if_not(conditions.begin() + static_cast<ptrdiff_t>(judged),
                       conditions.end(), steps::IsNeighbour);
  size_t done =
      NeighboursFrom(static_cast<size_t>(next - conditions.begin()), conditions);
  // Nor is it sure yet that the latest are not.
  while (done > 0 && steps_[done - 1].end_ns + kLatestNs > steps_.back().end_ns) --done;
  done = std::max(judged, done);
  if (steps_.size() - done > kMostSteps) done = steps_.size() - kMostSteps / 2;
  Compare(done, conditions);
  Forget(done);
  next_judging_ = steps_.size() + steps::kReach;
}

bool WallCost::AreThere(size_t last,
                        const std::vector<steps::Condition>& conditions) const {
  size_t left = steps::kReach;
  size_t at = last;
  for (; at < conditions.size() && left > 0 && at < last + steps::kFarthest; ++at) {
    if (!steps::IsNeighbour(conditions[at])) return true;
    if (conditions[at] == steps::Condition::kUntraced || recorded_longer_) --left;
  }
  return left == 0 || at == last + steps::kFarthest;
}

size_t WallCost::NeighboursFrom(size_t first,
                                const std::vector<steps::Condition>& conditions) {
  size_t left = steps::kReach;
  size_t at = first;
  while (at > 0 && left > 0 && first - at < steps::kFarthest) {
    if (conditions[--at] == steps::Condition::kUntraced) --left;
  }
  return at;
}

// What is told of recording, from steps that are done with.
void WallCost::Compare(size_t steps, const std::vector<steps::Condition>& conditions) {
  for (size_t i = 0; i < steps; ++i) {
    compared_.push_back(steps_[i]);
    conditions_of_compared_.push_back(conditions[i]);
    if (conditions[i] == steps::Condition::kUntraced)
      recorded_ns_ += steps_[i].length();
  }
  compared_since_ += steps;
  if (compared_since_ < kCompareEach) return;
  compared_since_ = 0;
  ForgetCompared();
  const std::optional<steps::Estimate> longer =
      steps::RecordedLonger(compared_, conditions_of_compared_);
  recorded_longer_.reset();
  if (longer) recorded_longer_ = longer->high;  // windows are charged by the lower end
  const double low = longer ? std::max(longer->low, 0.0) : 0;
  recording_.Add(std::exchange(recorded_ns_, 0) * low / (1 + low));
}

void WallCost::RecordingChanges() {
  compared_.clear();
  conditions_of_compared_.clear();
  compared_since_ = 0;
  recorded_ns_ = 0;
  recorded_longer_.reset();
}

void WallCost::ForgetCompared() {
  if (compared_.size() <= kMostCompared) return;
  const auto recorded = static_cast<size_t>(std::count(conditions_of_compared_.begin(),
                                                       conditions_of_compared_.end(),
                                                       steps::Condition::kUntraced));
  if (recorded <= kFewestCompared && compared_.size() <= kMostSteps) return;
  const size_t most = compared_.size() / 4;
  DropFront(most, &compared_);
  DropFront(most, &conditions_of_compared_);
}

void WallCost::ChargeTracing() {
  if (added_ns_.size() > kMostWindows) {
    DropFront(added_ns_.size() - kMostWindows, &added_ns_);
  }
  // The price of the last windows is not that of those long before.
  uncharged_ = std::min(uncharged_, added_ns_.size());
  const std::optional<steps::Estimate> of_one = steps::MedianOf(added_ns_);
  if (!of_one || of_one->low <= 0) return;
  double owed = of_one->low * static_cast<double>(uncharged_);
  if (uncharged_ > 1) {
    const auto first = added_ns_.end() - static_cast<ptrdiff_t>(uncharged_);
    owed = std::min(owed, std::accumulate(first, added_ns_.end(), 0.0));
  }
  if (owed <= 0) return;
  tracing_.Add(owed);
  uncharged_ = 0;
}

uint64_t Shown::WithOwn(uint64_t own_ns) {
  if (times_ != told_times_) {
    const uint64_t shown = total_ns_ - told_ns_;
    const uint64_t own = own_ns - std::min(own_ns, own_told_ns_);
    beyond_own_ns_ += shown - std::min(shown, own);
    told_ns_ = total_ns_;
    told_times_ = times_;
    own_told_ns_ = own_ns;
  }
  return own_ns + beyond_own_ns_;
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
