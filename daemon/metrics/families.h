// The metrics that lulld tells Prometheus: names, types, units, in the order in which
// an answer has them. docs/metrics.md says what each means. Names and labels are a
// promise: dashboards and alerts of others use them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lull::metrics {

enum class Metric : uint8_t {
  // Of a run.
  kRunInfo,
  kRunRunning,
  kRunAsleep,
  kRunStart,
  kRunDuration,
  kRunExitStatus,
  kRunIncomplete,
  kProcesses,
  kWorkingProcesses,
  kEventsCommitted,
  kEventsStored,
  kEventsLost,
  kRelayCpu,
  kOverheadBudget,
  // Of a rank.
  kProcessTime,
  kRestedTime,
  kOverheadTime,
  kOverhead,
  kGpuTraced,
  kGpuBusy,
  kGpuKernel,
  kGpuIdle,
  kGpuOperations,
  kGpuRecordsLost,
  kGpuMemorySize,
  kLaunches,
  kSyncBlocked,
  kGcPause,
  kRunQueue,
  kWaitTime,
  kWaits,
  kSteps,
  kStepDuration,
  kMemoryLive,
  kMemoryPeak,
  kMemoryReserved,
  kMemoryGrowth,
  kCpu,
  kResident,
  kMajorFaults,
  kStorage,
  kNetwork,
  kPressure,
  // Of the answer itself.
  kBuildInfo,
  kLeftOut,
  kRunsFailed,
  kSeries,
  kAnswerTime,
  kAnswerAge,
};
inline constexpr size_t kMetrics = static_cast<size_t>(Metric::kAnswerAge) + 1;

// A summary without quantiles: `_sum` in the family's unit, and `_count`.
enum class Type : uint8_t { kCounter, kGauge, kSummary };

// What the integer of a sample counts. Prometheus gets seconds, bytes and ratios.
enum class Unit : uint8_t { kOne, kNanoseconds, kMillionths };

struct Family {
  Metric metric;
  const char* name;
  Type type;
  Unit unit;
  const char* help;  // one line, without a backslash
};

const Family& FamilyOf(Metric metric);

}  // namespace lull::metrics
