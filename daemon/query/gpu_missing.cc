#include <algorithm>

#include "absl/strings/str_cat.h"
#include "daemon/query/gpu.h"

namespace lull::query {
namespace {

bool HasState(const ProcessSums& sums, v1::TracingState state) {
  return std::any_of(
      sums.tracing.begin(), sums.tracing.end(),
      [&](const storage::TracingRow& row) { return row.state == state; });
}

std::string WhyNot(const storage::JobRow& job, const ProcessSums& sums) {
  const storage::ProcessRow& process = sums.process;
  switch (process.counters.cupti_state()) {
    case v1::CUPTI_STATE_NO_LIBRARY:
      return "no CUPTI library was found, neither in the process nor beside the CUDA "
             "runtime";
    case v1::CUPTI_STATE_TOO_OLD:
      return absl::StrCat("the CUPTI library is too old (version ",
                          process.counters.cupti_version(),
                          "); tracing needs that of CUDA 11.8");
    case v1::CUPTI_STATE_FAILED:
      return absl::StrCat("CUPTI refused to trace (result ",
                          process.counters.cupti_result(), ")");
    default:
      break;
  }
  if (process.counters.gpu_calls() == 0) return "no GPU work was seen";
  if (HasState(sums, v1::TRACING_STATE_ACTIVE)) {
    return "the GPU was traced and nothing ran on it, or its records are still to come";
  }
  if (process.counters.cupti_state() == v1::CUPTI_STATE_YIELDED ||
      HasState(sums, v1::TRACING_STATE_YIELDED)) {
    return "another user of CUPTI, such as torch.profiler, had it all the time";
  }
  // CUPTI is loaded when a window begins.
  if (process.counters.cupti_state() == v1::CUPTI_STATE_UNUSED &&
      job.info.gpu_mode() == v1::GPU_MODE_CONTINUOUS) {
    return "tracing had not begun: no call of the process has loaded CUPTI yet";
  }
  if (HasState(sums, lull::v1::TRACING_STATE_WARM_UP)) {
    return "windows of tracing warmed up and did not count: the GPU was still at work "
           "on "
           "what was launched before, or the job ended first; tracing for longer "
           "(--schedule, --gpu continuous) may reach what it is at";
  }
  return absl::StrCat("no window of tracing ", job.ended ? "came" : "has come yet",
                      job.info.gpu_schedule().empty()
                          ? ""
                          : absl::StrCat(" (schedule ", job.info.gpu_schedule(), ")"));
}

// How much a process has to say: one that worked on the GPU goes before one that did
// not.
bool SaysLess(const ProcessSums& a, const ProcessSums& b) {
  return a.process.counters.gpu_calls() < b.process.counters.gpu_calls();
}

}  // namespace

std::string WhyNoGpuTruth(const storage::JobRow& job,
                          const std::vector<ProcessSums>& processes) {
  if (job.info.gpu_mode() == v1::GPU_MODE_HOST)
    return "tracing of the GPU is off (--gpu host)";
  bool traced_elsewhere =
      std::any_of(processes.begin(), processes.end(), [](const ProcessSums& sums) {
        return std::any_of(sums.series.begin(), sums.series.end(), [](const auto& s) {
          return s.type == EventType::kCoverage;
        });
      });
  if (traced_elsewhere) return "nothing was traced in this range of time";
  if (processes.empty()) return "no process has reported";
  if (processes.front().recorded.never()) {
    return "the job was asleep all the time (lull arm wakes one up)";
  }
  return WhyNot(job, *std::max_element(processes.begin(), processes.end(), SaysLess));
}

}  // namespace lull::query
