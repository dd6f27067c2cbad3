#include "daemon/metrics/families.h"

#include <iterator>

namespace lull::metrics {
namespace {

constexpr Type kCounter = Type::kCounter, kGauge = Type::kGauge;
constexpr Unit kOne = Unit::kOne, kSeconds = Unit::kNanoseconds,
               kRatio = Unit::kMillionths;

constexpr Family kFamilies[] = {
    {Metric::kRunInfo, "lull_run_info", kGauge, kOne,
     "A run: the name that it was given and its host."},
    {Metric::kRunRunning, "lull_run_running", kGauge, kOne,
     "1 while the run goes on and its relay reports."},
    {Metric::kRunAsleep, "lull_run_asleep", kGauge, kOne,
     "1 while the run goes on and records nothing (lull arm wakes it up)."},
    {Metric::kRunStart, "lull_run_start_timestamp_seconds", kGauge, kSeconds,
     "When the run began, as Unix time."},
    {Metric::kRunDuration, "lull_run_duration_seconds", kGauge, kSeconds,
     "From the start of the run to its end, or to the last event."},
    {Metric::kRunExitStatus, "lull_run_exit_status", kGauge, kOne,
     "Exit status of a run that has ended; 128 + n if signal n ended it."},
    {Metric::kRunIncomplete, "lull_run_incomplete", kGauge, kOne,
     "How often something kept part of the run from being recorded, by what it was."},
    {Metric::kProcesses, "lull_processes", kGauge, kOne,
     "Processes of the run that have reported."},
    {Metric::kWorkingProcesses, "lull_working_processes", kGauge, kOne,
     "Processes of the run that did GPU work or allocated tensors."},
    {Metric::kEventsCommitted, "lull_events_committed_total", kCounter, kOne,
     "Events that processes of the run have recorded."},
    {Metric::kEventsStored, "lull_events_stored_total", kCounter, kOne,
     "Events that the collector has stored."},
    {Metric::kEventsLost, "lull_events_lost_total", kCounter, kOne,
     "Events that were lost, by the place where they were."},
    {Metric::kRelayCpu, "lull_relay_cpu_seconds_total", kCounter, kSeconds,
     "Processor time of the run's relay; told at the end of the run."},
    {Metric::kOverheadBudget, "lull_overhead_budget_ratio", kGauge, kRatio,
     "The part of a process's time that measuring may cost."},
    {Metric::kProcessTime, "lull_process_seconds_total", kCounter, kSeconds,
     "Recorded life of the rank's processes, added up."},
    {Metric::kRestedTime, "lull_process_rested_seconds_total", kCounter, kSeconds,
     "Life of the rank's processes that was not recorded to hold the overhead budget."},
    {Metric::kOverheadTime, "lull_overhead_seconds_total", kCounter, kSeconds,
     "Time in lull's own code inside the rank's processes."},
    {Metric::kOverhead, "lull_overhead_ratio", kGauge, kRatio,
     "The part of its time that measuring has cost the rank's process where it is "
     "highest."},
    {Metric::kGpuTraced, "lull_gpu_traced_seconds_total", kCounter, kSeconds,
     "GPU time of which is known what ran, added up over devices."},
    {Metric::kGpuBusy, "lull_gpu_busy_seconds_total", kCounter, kSeconds,
     "The part of traced time in which a kernel, copy or memset ran."},
    {Metric::kGpuKernel, "lull_gpu_kernel_seconds_total", kCounter, kSeconds,
     "The part of busy time in which a kernel or graph ran."},
    {Metric::kGpuIdle, "lull_gpu_idle_seconds_total", kCounter, kSeconds,
     "The part of traced time in which nothing ran, by its cause."},
    {Metric::kGpuOperations, "lull_gpu_operations_total", kCounter, kOne,
     "Operations in traced time, by kind."},
    {Metric::kGpuRecordsLost, "lull_gpu_records_lost_total", kCounter, kOne,
     "Records of GPU operations that were lost or came too late, by the place."},
    {Metric::kGpuMemorySize, "lull_gpu_memory_size_bytes", kGauge, kOne,
     "Memory that the device has."},
    {Metric::kLaunches, "lull_launches_total", kCounter, kOne,
     "Calls that launched GPU work."},
    {Metric::kSyncBlocked, "lull_sync_blocked_seconds_total", kCounter, kSeconds,
     "Time in calls that blocked on the GPU, added up over threads."},
    {Metric::kGcPause, "lull_gc_pause_seconds_total", kCounter, kSeconds,
     "Time in CPython's cyclic garbage collector."},
    {Metric::kRunQueue, "lull_run_queue_seconds_total", kCounter, kSeconds,
     "Time in which threads that record were ready and had no processor."},
    {Metric::kWaitTime, "lull_wait_seconds_total", kCounter, kSeconds,
     "Time in waits on the host of at least the threshold, added up over threads, by "
     "what was waited for."},
    {Metric::kWaits, "lull_waits_total", kCounter, kOne,
     "Waits on the host of at least the threshold, by what was waited for."},
    {Metric::kSteps, "lull_steps_total", kCounter, kOne,
     "Training steps that have ended."},
    {Metric::kStepDuration, "lull_step_duration_seconds", Type::kSummary, kSeconds,
     "How long the steps took that the program marks; the first of a process counts "
     "without a time."},
    {Metric::kMemoryLive, "lull_memory_live_bytes", kGauge, kOne,
     "Memory that is allocated now."},
    {Metric::kMemoryPeak, "lull_memory_peak_bytes", kGauge, kOne,
     "Most memory that was allocated at once, per process, added up."},
    {Metric::kMemoryReserved, "lull_memory_reserved_bytes", kGauge, kOne,
     "Memory of the device that the allocator holds, used or not."},
    {Metric::kMemoryGrowth, "lull_memory_growth_bytes", kGauge, kOne,
     "By how much live memory grows with each step; not there unless it grows "
     "steadily."},
    {Metric::kCpu, "lull_process_cpu_seconds_total", kCounter, kSeconds,
     "Processor time of the rank's processes since they began, by mode."},
    {Metric::kResident, "lull_process_resident_bytes", kGauge, kOne,
     "Memory of the host that the rank's processes have now."},
    {Metric::kMajorFaults, "lull_process_major_faults_total", kCounter, kOne,
     "Pages that the rank's processes had to have read from storage."},
    {Metric::kStorage, "lull_process_storage_bytes_total", kCounter, kOne,
     "What the rank's processes have read from storage and written to it, by "
     "direction."},
    {Metric::kNetwork, "lull_network_bytes_total", kCounter, kOne,
     "What has passed the network that the rank is in, but not by loopback or RDMA, by "
     "direction."},
    {Metric::kPressure, "lull_pressure_seconds_total", kCounter, kSeconds,
     "Time in which some or all tasks of the rank's cgroup, or of its host, were held "
     "up for want of a resource."},
    {Metric::kBuildInfo, "lull_build_info", kGauge, kOne, "The release of this lulld."},
    {Metric::kLeftOut, "lull_metrics_left_out", kGauge, kOne,
     "Runs and ranks that this answer leaves out, because it would have too many "
     "series."},
    {Metric::kRunsFailed, "lull_metrics_failed_runs", kGauge, kOne,
     "Runs that could not be read."},
    {Metric::kSeries, "lull_metrics_series", kGauge, kOne,
     "Series of runs and ranks in this answer."},
    {Metric::kAnswerTime, "lull_metrics_answer_seconds", kGauge, kSeconds,
     "How long this answer took to make."},
    {Metric::kAnswerAge, "lull_metrics_age_seconds", kGauge, kSeconds,
     "When this answer was made, in seconds before now."},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < std::size(kFamilies); ++i) {
    if (static_cast<size_t>(kFamilies[i].metric) != i) return false;
  }
  return std::size(kFamilies) == kMetrics;
}
static_assert(InOrder());

}  // namespace

const Family& FamilyOf(Metric metric) { return kFamilies[static_cast<size_t>(metric)]; }

}  // namespace lull::metrics
