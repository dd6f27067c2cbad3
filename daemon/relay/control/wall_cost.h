// What windows of GPU tracing have cost a target on the wall clock, told from its steps
// as reports tell it (daemon/steps/step_cost.h): each window against its neighbours.
// The governor takes it from the budget. It contains what no clock of ours can see:
// what CUPTI adds to each launch, and what the job waits for processors that we use.
// Where a job has control steps, the same for what recording has cost.
//
// What is charged is what the windows together show: the lower end of the interval for
// one of them. In a training whose steps differ anyway, chance would hold tracing up
// otherwise. Once they show something, those before are made up for, as far as they
// cost something.
//
// Pure: no clock. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "daemon/steps/step_cost.h"
#include "preload/abi/event.h"

namespace lull::relay {

// A cost that grows as steps show it, beside the same as our own clocks see it.
class Shown {
 public:
  // 0: of the time since the last call they show nothing.
  void Add(double ns) {
    total_ns_ += static_cast<uint64_t>(ns);
    ++times_;
  }
  uint64_t total_ns() const { return total_ns_; }  // never falls
  // `own_ns`, by our clocks until now, and what steps show beyond it. The own time
  // between two charges is a part of the second.
  uint64_t WithOwn(uint64_t own_ns);

 private:
  uint64_t total_ns_ = 0;
  uint64_t times_ = 0;  // that something was added
  uint64_t told_times_ = 0;
  uint64_t told_ns_ = 0;      // of it, by WithOwn()
  uint64_t own_told_ns_ = 0;  // as of then
  uint64_t beyond_own_ns_ = 0;
};

class WallCost {
 public:
  // In the order of time.
  void AddStep(const steps::TimedStep& step);
  // In any order, a little later than the steps: another thread may tell it.
  void AddTracing(uint64_t time_ns, abi::TracingState state);

  // What windows have cost, as steps show.
  Shown& tracing() { return tracing_; }
  // What recording of steps that are not traced has cost, by the lower end, too. What
  // was recorded before that was known is not made up for.
  Shown& recording() { return recording_; }
  // From now on steps are recorded with more or less detail.
  void RecordingChanges();

 private:
  // Steps of a window that is longer than half of that are not judged as one.
  static constexpr size_t kMostSteps = 4096;
  static constexpr size_t kMostChanges = 1024;
  // Of steps, what changes of tracing may be told later.
  static constexpr uint64_t kLatestNs = 2'000'000'000;
  // What a window costs may change as the training does.
  static constexpr size_t kMostWindows = 240;
  // Steps from which is told what recording costs, unless few of them are recorded; and
  // how often that is done.
  static constexpr size_t kMostCompared = 1024;
  static constexpr size_t kFewestCompared = 64;
  static constexpr size_t kCompareEach = 16;

  void Judge();
  void ChargeTracing();
  void Compare(size_t steps, const std::vector<steps::Condition>& conditions);
  void ForgetCompared();
  void Forget(size_t steps);
  // Whether steps [last, ...) contain all that may be neighbours of a window before.
  bool AreThere(size_t last, const std::vector<steps::Condition>& conditions) const;
  // From where on steps may be neighbours of a window that begins at `first`.
  static size_t NeighboursFrom(size_t first,
                               const std::vector<steps::Condition>& conditions);

  std::vector<steps::TimedStep> steps_;  // of which a window may still need some
  std::vector<steps::TracingChange> changes_;
  size_t next_judging_ = steps::kReach;  // as soon as there are so many steps
  std::vector<double> added_ns_;         // by the last windows
  size_t uncharged_ = 0;                 // windows
  Shown tracing_;

  std::vector<steps::TimedStep> compared_;  // not traced, the latest
  std::vector<steps::Condition> conditions_of_compared_;
  size_t compared_since_ = 0;  // steps
  double recorded_ns_ = 0;     // in these
  std::optional<double> recorded_longer_;
  Shown recording_;
};

}  // namespace lull::relay
