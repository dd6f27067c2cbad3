#include "daemon/compare/per_step.h"

#include "daemon/compare/statistics.h"
#include "daemon/words/format.h"

namespace lull::compare {

PerStep::PerStep(const Run& run) {
  std::vector<double> all, traced;
  for (const ProcessSteps& process : run.processes) {
    steps_ += process.steps.size();
    for (const Step& step : process.steps) {
      all.push_back(D(step.duration_ns));
      if (step.traced) traced.push_back(D(step.duration_ns));
    }
  }
  for (const ProcessReplies& replies : run.replies) {
    traced_ns_ += D(replies.all.gpu().traced_ns());
  }
  mean_step_ns_ = Mean(traced.empty() ? all : traced);
}

double PerStep::HostCount(uint64_t count) const {
  return steps_ > 0 ? D(count) / D(steps_) : 0;
}

double PerStep::DeviceCount(uint64_t count) const {
  return traced() ? D(count) * mean_step_ns_ / traced_ns_ : 0;
}

double PerStep::Host(uint64_t ns) const { return HostCount(ns) / 1e6; }
double PerStep::Device(uint64_t ns) const { return DeviceCount(ns) / 1e6; }

}  // namespace lull::compare
