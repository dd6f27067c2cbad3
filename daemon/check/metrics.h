// What rules may speak of: numbers that a comparison has.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace lull::check {

enum class Measure {
  kSyncCalls,
  kSyncBlocked,
  kSyncWasted,
  kSyncWastedPercent,
  kIdleMs,  // of the GPU; of the cause `part`, or "" all
  kIdlePercent,
  kHostMs,  // what the host waited for: `part`
  kStepMs,
  kStepChange,  // against the baseline
  kPeakMiB,     // of the allocator `part`
  kReservedMiB,
};

struct Metric {
  std::string name;  // "cause.data.ms_per_step"
  std::string unit;  // "ms", "%", "MiB"; "" of a count
  Measure measure = Measure::kSyncCalls;
  std::string part;

  // Whether it is a sum over sync points, which a selector can choose from.
  bool of_sites() const { return measure <= Measure::kSyncWastedPercent; }
  bool of_memory() const {
    return measure == Measure::kPeakMiB || measure == Measure::kReservedMiB;
  }
  // Whether it is made of GPU truth.
  bool of_gpu() const {
    return measure == Measure::kSyncWasted || measure == Measure::kSyncWastedPercent ||
           measure == Measure::kIdleMs || measure == Measure::kIdlePercent;
  }
};

const std::vector<Metric>& Metrics();
// nullptr if there is none of this name.
const Metric* FindMetric(absl::string_view name);

}  // namespace lull::check
