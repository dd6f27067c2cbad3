// Sums of a run's answers as times per step.
#pragma once

#include <cstdint>

#include "daemon/compare/run.h"

namespace lull::compare {

class PerStep {
 public:
  explicit PerStep(const Run& run);

  uint64_t steps() const { return steps_; }  // of all processes
  // Whether there is GPU truth for the time of the steps.
  bool traced() const { return traced_ns_ > 0; }

  double MeanStepMs() const { return mean_step_ns_ / 1e6; }

  // In milliseconds. Of the host all was recorded; of a device traced time alone, so
  // its times are shares of traced time, as long as an average step.
  double Host(uint64_t ns) const;
  double Device(uint64_t ns) const;
  double HostCount(uint64_t count) const;
  double DeviceCount(uint64_t count) const;

 private:
  uint64_t steps_ = 0;
  double traced_ns_ = 0;     // over all devices
  double mean_step_ns_ = 0;  // of traced steps, if there are any
};

}  // namespace lull::compare
