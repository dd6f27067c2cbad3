#include "daemon/steps/step_cost.h"

#include <algorithm>

namespace lull::steps {
namespace {

// How far on either side of a window its neighbours count. More would tell more of one
// window, and of a training that changes.
constexpr size_t kReach = 8;
constexpr size_t kFewestNeighbours = 4;
// Steps between windows that are compared with those before the first.
constexpr size_t kMostBetween = 60;

double MedianLength(std::vector<double> lengths) {
  const auto middle = lengths.begin() + static_cast<ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  if (lengths.size() % 2 != 0) return *middle;
  return (*middle + *std::max_element(lengths.begin(), middle)) / 2;
}

bool InWindow(Condition condition) {
  return condition == Condition::kBegins || condition == Condition::kTraced ||
         condition == Condition::kEnds;
}

// Steps and their conditions; a window is [first, last).
class Story {
 public:
  Story(const std::vector<TimedStep>& steps, const std::vector<TracingChange>& changes)
      : steps_(steps), conditions_(ConditionsOf(steps, changes)) {}

  StepCost Cost() {
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
    Count();
    cost_.traced_longer = MedianOf(longer_);
    cost_.paid = Paid();
    cost_.between_longer = BetweenLonger();
    return std::move(cost_);
  }

 private:
  bool Follows(size_t i) const { return steps_[i].number == steps_[i - 1].number + 1; }

  // Up to kReach neighbours before `at`, and from it on.
  std::vector<double> Before(size_t at) const {
    std::vector<double> lengths;
    while (at > 0 && lengths.size() < kReach && Follows(at) &&
           conditions_[at - 1] == Condition::kUntraced) {
      lengths.push_back(steps_[--at].length());
    }
    return lengths;
  }
  std::vector<double> After(size_t at) const {
    std::vector<double> lengths;
    for (; at > 0 && at < steps_.size() && lengths.size() < kReach && Follows(at) &&
           conditions_[at] == Condition::kUntraced;
         ++at) {
      lengths.push_back(steps_[at].length());
    }
    return lengths;
  }

  // One without its beginning or its end stands at the edge of what is known.
  void Judge(size_t first, size_t last) {
    std::vector<double> neighbours = Before(first);
    const std::vector<double> after = After(last);
    neighbours.insert(neighbours.end(), after.begin(), after.end());
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
      // Of a long window the steps that are near its neighbours.
      if (i < first + 1 + kReach || i + 1 + kReach >= last) {
        traced.push_back(steps_[i].length());
      }
    }
    if (neighbours.size() < kFewestNeighbours || traced.empty()) return;
    const double usual = MedianLength(neighbours);
    if (usual <= 0) return;
    const double with = MedianLength(traced);
    longer_.push_back(with / usual - 1);
    added_.push_back(static_cast<double>(traced_steps) * (with - usual) + others -
                     static_cast<double>(other_steps) * usual);
  }

  void Count() {
    cost_.windows = longer_.size();
    for (Condition condition : conditions_) {
      cost_.traced_steps += condition == Condition::kTraced ? 1 : 0;
      cost_.untraced_steps += condition == Condition::kUntraced ? 1 : 0;
    }
  }

  // Windows that could not be judged cost what the others did.
  std::optional<Estimate> Paid() const {
    std::optional<Estimate> added = MedianOf(added_);
    if (!added) return std::nullopt;
    double total = 0;
    for (const TimedStep& step : steps_) total += step.length();
    auto share = [&](double of_one) {
      const double sum = of_one * static_cast<double>(windows_);
      return sum < total ? sum / (total - sum) : 1.0;
    };
    return Estimate{share(added->share), share(added->low), share(added->high)};
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
    // Of a long time before the first window its end.
    if (before.size() > kMostBetween) {
      before.erase(before.begin(), before.end() - kMostBetween);
    }
    return RatioOf(before, between);
  }

  const std::vector<TimedStep>& steps_;
  const std::vector<Condition> conditions_;
  size_t windows_ = 0;
  std::vector<double> longer_;  // by window that could be judged
  std::vector<double> added_;
  StepCost cost_;
};

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
    conditions.push_back(anothers ? Condition::kAnothers
                         : ends   ? Condition::kEnds
                         : begins ? Condition::kBegins
                         : on     ? Condition::kTraced
                                  : Condition::kUntraced);
  }
  return conditions;
}

StepCost CostOf(const std::vector<TimedStep>& steps,
                const std::vector<TracingChange>& changes) {
  return Story(steps, changes).Cost();
}

}  // namespace lull::steps
