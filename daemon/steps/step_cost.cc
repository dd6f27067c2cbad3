#include "daemon/steps/step_cost.h"

#include <algorithm>
#include <utility>

#include "daemon/base/median.h"

namespace lull::steps {
namespace {

constexpr size_t kFewestNeighbours = 4;
constexpr uint64_t kLongestBlock = 512;
// Steps between windows that are compared with those before the first.
constexpr size_t kMostBetween = 60;

// As many of each kind: where lengths are skewed, or of two sorts, the median of few is
// not that of many, and a job would seem to pay what it does not. From all over them.
std::vector<double> FewOf(const std::vector<double>& lengths) {
  std::vector<double> few;
  for (size_t i = 0; i < kFewestNeighbours; ++i) {
    few.push_back(lengths[(2 * i + 1) * lengths.size() / (2 * kFewestNeighbours)]);
  }
  return few;
}

// Steps and their conditions; a window is [first, last).
class Story {
 public:
  // `recorded_longer`: see JudgeWindows(). `sampled_from`: see CostOf().
  Story(const std::vector<TimedStep>& steps, const std::vector<Condition>& conditions,
        std::optional<double> recorded_longer = std::nullopt, uint64_t sampled_from = 0)
      : steps_(steps), conditions_(conditions), recorded_longer_(recorded_longer) {
    const auto is_before = [&](const TimedStep& step) {
      return step.rested_ns == 0 || step.number < sampled_from;
    };
    while (first_ < steps.size() && is_before(steps[first_])) ++first_;
    if (first_ == steps.size()) first_ = 0;
  }

  std::vector<JudgedWindow>& JudgeAll() {
    for (size_t i = 0; i < steps_.size();) {
      const size_t first = i;
      while (i < steps_.size() && InWindow(conditions_[i]) &&
             (i == first || Follows(i))) {
        const bool ends = conditions_[i++] == Condition::kEnds;
        if (ends) break;
      }
      if (i == first) {
        ++i;
      } else {
        ++windows_;
        Judge(first, i);
      }
    }
    return judged_;
  }

  // After JudgeAll().
  StepCost Cost(const std::vector<double>& recorded) const {
    StepCost cost;
    cost.windows = judged_.size();
    for (Condition condition : conditions_) {
      cost.traced_steps += condition == Condition::kTraced ? 1 : 0;
      cost.untraced_steps += condition == Condition::kUntraced ? 1 : 0;
    }
    for (size_t i = first_; i < steps_.size(); ++i) {
      ++(steps_[i].rested_ns != 0 ? cost.rested_steps : cost.recorded_steps);
    }
    std::vector<double> longer;
    for (const JudgedWindow& window : judged_) longer.push_back(window.longer);
    cost.traced_longer = MedianOf(longer);
    cost.paid = Paid();
    cost.between_longer = BetweenLonger();
    cost.control_steps = ManyRest() ? Count(Condition::kControl) : recorded.size();
    cost.recorded_longer = MedianOf(recorded);
    if (cost.recorded_longer)
      cost.recording_paid = RecordingPaid(*cost.recorded_longer);
    return cost;
  }

  // How much longer recorded steps are than control steps beside them.
  std::vector<double> RecordedLonger() const {
    if (ManyRest()) return RecordedLongerInBlocks();
    std::vector<double> longer;
    for (size_t i = first_; i < steps_.size(); ++i) {
      if (conditions_[i] != Condition::kControl || steps_[i].length() <= 0) continue;
      const std::vector<double> neighbours = Beside(i, i + 1);
      if (neighbours.size() < kFewestNeighbours) continue;
      longer.push_back(Median(neighbours) / steps_[i].length() - 1);
    }
    return longer;
  }

 private:
  bool Follows(size_t i) const { return steps_[i].number == steps_[i - 1].number + 1; }

  // From the first control step on.
  size_t Count(Condition condition) const {
    return static_cast<size_t>(
        std::count(conditions_.begin() + static_cast<ptrdiff_t>(first_),
                   conditions_.end(), condition));
  }
  // So many that neighbours of theirs would be neighbours of each other.
  bool ManyRest() const {
    return 2 * Count(Condition::kControl) > Count(Condition::kUntraced);
  }

  // A value for each few steps of either kind that lie together, windows aside.
  std::vector<double> RecordedLongerInBlocks() const {
    std::vector<double> longer, recorded, rested;
    uint64_t first = 0;  // of the block, a number
    for (size_t i = first_; i < steps_.size(); ++i) {
      if (!IsNeighbour(conditions_[i])) continue;
      if (steps_[i].number - first > kLongestBlock) {
        recorded.clear();
        rested.clear();
      }
      if (recorded.empty() && rested.empty()) first = steps_[i].number;
      auto& lengths = conditions_[i] == Condition::kControl ? rested : recorded;
      lengths.push_back(steps_[i].length());
      if (std::min(recorded.size(), rested.size()) < kFewestNeighbours) continue;
      const double usual = Median(FewOf(rested));
      if (usual > 0) longer.push_back(Median(FewOf(recorded)) / usual - 1);
      recorded.clear();
      rested.clear();
    }
    return longer;
  }

  // How long an untraced step is when it is recorded, if that is known.
  std::optional<double> LengthAsRecorded(size_t i) const {
    if (conditions_[i] == Condition::kUntraced) return steps_[i].length();
    if (!recorded_longer_) return std::nullopt;
    return steps_[i].length() * (1 + *recorded_longer_);
  }

  // Appends the lengths of up to kReach neighbours before `at`, or from it on.
  void Before(size_t at, std::vector<double>* lengths) const {
    const size_t end = at - std::min(at, kFarthest);
    for (size_t left = kReach; at > end && left > 0 && Follows(at); --at) {
      if (!IsNeighbour(conditions_[at - 1])) return;
      const std::optional<double> length = LengthAsRecorded(at - 1);
      if (!length) continue;
      lengths->push_back(*length);
      --left;
    }
  }
  void After(size_t at, std::vector<double>* lengths) const {
    const size_t end = std::min(steps_.size(), at + kFarthest);
    for (size_t left = kReach; at > 0 && at < end && left > 0 && Follows(at); ++at) {
      if (!IsNeighbour(conditions_[at])) return;
      const std::optional<double> length = LengthAsRecorded(at);
      if (!length) continue;
      lengths->push_back(*length);
      --left;
    }
  }

  // Of the steps [first, last).
  std::vector<double> Beside(size_t first, size_t last) const {
    std::vector<double> neighbours;
    Before(first, &neighbours);
    After(last, &neighbours);
    return neighbours;
  }

  void Judge(size_t first, size_t last) {
    const std::vector<double> neighbours = Beside(first, last);
    std::vector<double> traced;
    double others = 0;  // begins, ends
    size_t other_steps = 0;
    size_t traced_steps = 0;
    for (size_t i = first; i < last; ++i) {
      if (conditions_[i] != Condition::kTraced) {
        others += steps_[i].length();
        ++other_steps;
        continue;
      }
      ++traced_steps;
      // In a long window only the steps near its neighbours count.
      if (i < first + 1 + kReach || i + 1 + kReach >= last) {
        traced.push_back(steps_[i].length());
      }
    }
    if (neighbours.size() < kFewestNeighbours || traced.empty()) return;
    const double usual = Median(neighbours);
    if (usual <= 0) return;
    const double with = Median(traced);
    judged_.push_back({first, last, with / usual - 1,
                       static_cast<double>(traced_steps) * (with - usual) + others -
                           static_cast<double>(other_steps) * usual});
  }

  // Windows that could not be judged cost what the others did.
  std::optional<Estimate> Paid() const {
    std::vector<double> added_of_each;
    for (const JudgedWindow& window : judged_) added_of_each.push_back(window.added_ns);
    std::optional<Estimate> added = MedianOf(added_of_each);
    if (!added) return std::nullopt;
    double total = 0;
    for (const TimedStep& step : steps_) total += step.length();
    auto share = [&](double of_one) {
      const double sum = of_one * static_cast<double>(windows_);
      return sum < total ? sum / (total - sum) : 1.0;
    };
    return Estimate{share(added->share), share(added->low), share(added->high)};
  }

  Estimate RecordingPaid(const Estimate& longer) const {
    double total = 0, recorded = 0;
    for (size_t i = first_; i < steps_.size(); ++i) {
      total += steps_[i].length();
      if (conditions_[i] == Condition::kUntraced) recorded += steps_[i].length();
    }
    auto share = [&](double of_recorded) {
      const double added = recorded * of_recorded / (1 + of_recorded);
      return added < total ? added / (total - added) : 1.0;
    };
    return {share(longer.share), share(longer.low), share(longer.high)};
  }

  std::optional<Estimate> BetweenLonger() const {
    const size_t first_window = static_cast<size_t>(
        std::find_if(conditions_.begin(), conditions_.end(), InWindow) -
        conditions_.begin());
    std::vector<double> before, between;
    for (size_t i = 0; i < steps_.size() && between.size() < kMostBetween; ++i) {
      if (conditions_[i] != Condition::kUntraced) continue;
      if (i > first_window) {
        between.push_back(steps_[i].length());
      } else if (steps_[i].number > kWarmUpSteps) {
        before.push_back(steps_[i].length());
      }
    }
    // If the time before the first window is long, only its end counts.
    if (before.size() > kMostBetween) {
      before.erase(before.begin(), before.end() - kMostBetween);
    }
    return RatioOf(before, between);
  }

  const std::vector<TimedStep>& steps_;
  const std::vector<Condition>& conditions_;
  const std::optional<double> recorded_longer_;
  size_t first_ = 0;  // control step, if there is one
  size_t windows_ = 0;
  std::vector<JudgedWindow> judged_;
};

void Widen(const std::optional<Estimate>& least, const std::optional<Estimate>& most,
           std::optional<Estimate>* told) {
  if (!*told) return;
  if (least) (*told)->low = std::min((*told)->low, least->low);
  if (most) (*told)->high = std::max((*told)->high, most->high);
}

}  // namespace

std::vector<Condition> ConditionsOf(const std::vector<TimedStep>& steps,
                                    const std::vector<TracingChange>& changes) {
  std::vector<Condition> conditions;
  TracingIs is = TracingIs::kOff;
  size_t next = 0;
  for (const TimedStep& step : steps) {
    for (; next < changes.size() && changes[next].time_ns <= step.start_ns; ++next) {
      is = changes[next].is;
    }
    bool on = is == TracingIs::kOn;
    bool anothers = is == TracingIs::kAnothers;
    bool begins = false;
    bool ends = false;
    for (size_t i = next; i < changes.size() && changes[i].time_ns < step.end_ns; ++i) {
      const bool was_on = on;
      on = changes[i].is == TracingIs::kOn;
      anothers = anothers || changes[i].is == TracingIs::kAnothers;
      begins = begins || (on && !was_on);
      ends = ends || (!on && was_on);
    }
    const bool rested = step.rested_ns != 0;
    const bool whole = step.rested_ns >= step.end_ns - step.start_ns;
    anothers = anothers || (rested && (!whole || on || begins || ends));
    conditions.push_back(anothers ? Condition::kAnothers
                         : rested ? Condition::kControl
                         : ends   ? Condition::kEnds
                         : begins ? Condition::kBegins
                         : on     ? Condition::kTraced
                                  : Condition::kUntraced);
  }
  return conditions;
}

StepCost CostOf(const std::vector<TimedStep>& steps,
                const std::vector<TracingChange>& changes, uint64_t sampled_from) {
  const std::vector<Condition> conditions = ConditionsOf(steps, changes);
  const std::vector<double> recorded =
      Story(steps, conditions, std::nullopt, sampled_from).RecordedLonger();
  const std::optional<Estimate> longer = MedianOf(recorded);
  auto told = [&](std::optional<double> recorded_longer) {
    Story story(steps, conditions, recorded_longer, sampled_from);
    story.JudgeAll();
    return story.Cost(recorded);
  };
  if (!longer) return told(std::nullopt);
  StepCost cost = told(longer->share);
  // How far off that may be is the same for all windows, so they do not show it.
  const StepCost least = told(longer->high);
  const StepCost most = told(longer->low);
  Widen(least.traced_longer, most.traced_longer, &cost.traced_longer);
  Widen(least.paid, most.paid, &cost.paid);
  return cost;
}

bool InWindow(Condition condition) {
  return condition == Condition::kBegins || condition == Condition::kTraced ||
         condition == Condition::kEnds;
}

bool IsNeighbour(Condition condition) {
  return condition == Condition::kUntraced || condition == Condition::kControl;
}

std::optional<Estimate> RecordedLonger(const std::vector<TimedStep>& steps,
                                       const std::vector<Condition>& conditions) {
  return MedianOf(Story(steps, conditions).RecordedLonger());
}

std::vector<JudgedWindow> JudgeWindows(const std::vector<TimedStep>& steps,
                                       const std::vector<Condition>& conditions,
                                       std::optional<double> recorded_longer) {
  return std::move(Story(steps, conditions, recorded_longer).JudgeAll());
}

}  // namespace lull::steps
