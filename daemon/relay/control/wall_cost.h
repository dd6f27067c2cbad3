// What windows of GPU tracing have cost a target on the wall clock, told from its steps
// as reports tell it (daemon/steps/step_cost.h): each window against its neighbours.
// The governor takes it from the budget. It contains what no clock of ours can see:
// what CUPTI adds to each launch, and what the job waits for processors that we use.
//
// What is charged is what the windows together show: the lower end of the interval for
// one of them. In a training whose steps differ anyway, chance would hold tracing up
// otherwise. Once they show something, those before are made up for.
//
// Pure: no clock. Times are CLOCK_MONOTONIC in ns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "daemon/steps/step_cost.h"
#include "preload/abi/event.h"

namespace lull::relay {

class WallCost {
 public:
  // In the order of time, each of them.
  void AddStep(uint64_t number, uint64_t start_ns, uint64_t end_ns);
  void AddTracing(uint64_t time_ns, abi::TracingState state);

  // Never falls.
  uint64_t total_ns() const { return total_ns_; }

 private:
  // Steps of a window that is longer than half of that are not judged as one.
  static constexpr size_t kMostSteps = 4096;
  static constexpr size_t kMostChanges = 1024;
  // What a window costs may change as the training does.
  static constexpr size_t kMostWindows = 240;

  void Judge();
  void Charge();
  void Forget(size_t steps);

  std::vector<steps::TimedStep> steps_;  // of which a window may still need some
  std::vector<steps::TracingChange> changes_;
  size_t next_judging_ = steps::kReach;  // as soon as there are so many steps
  std::vector<double> added_ns_;         // by the last windows
  size_t uncharged_ = 0;                 // windows
  uint64_t total_ns_ = 0;
};

}  // namespace lull::relay
