#include "daemon/query/steps.h"

#include <algorithm>
#include <numeric>

#include "daemon/base/median.h"
#include "daemon/base/status.h"
#include "daemon/query/kernels.h"
#include "daemon/query/phases.h"

namespace lull::query {
namespace {

using v1::StepRow;

constexpr uint32_t kStepsOfAnOverview = 5;
constexpr uint8_t kOldest = 2;  // the generation that a full collection is of

struct StepColumn {
  void (StepRow::*set)(uint64_t);
  bool of_device;
};
// By steps::Part.
constexpr StepColumn kStepColumns[] = {
    {&StepRow::set_kernel_ns, true},   {&StepRow::set_memcpy_ns, true},
    {&StepRow::set_memset_ns, true},   {&StepRow::set_communication_ns, true},
    {&StepRow::set_runtime_ns, false}, {&StepRow::set_data_ns, false},
    {&StepRow::set_host_ns, false},
};
constexpr size_t kKernel = 0, kCommunication = 3;

struct Step {
  const storage::ProcessRow* process;
  storage::StepRow row;

  uint64_t duration_ns() const { return row.end_ns - row.start_ns; }
  bool timed() const { return duration_ns() != 0; }  // not of the first one
  uint64_t other_ns() const {
    return duration_ns() -
           std::accumulate(row.part_ns.begin(), row.part_ns.end(), uint64_t{0});
  }
};

const char* SourceName(v1::StepSource source) {
  switch (source) {
    case v1::STEP_SOURCE_OPTIMIZER:
      return "optimizer";
    case v1::STEP_SOURCE_NVTX_RANGE:
      return "nvtx";
    case v1::STEP_SOURCE_PERIOD:
      return "period";
    case v1::STEP_SOURCE_PROFILER:
      return "profiler";
    default:
      return "";
  }
}

// The lower of the two in the middle, so that it is a time that a step really took.
template <typename Get>
uint64_t Median(const std::vector<const Step*>& steps, Get get) {
  std::vector<uint64_t> values;
  for (const Step* step : steps) values.push_back(get(*step));
  return LowerMedian(std::move(values));
}

void FillMedian(const std::vector<const Step*>& all, StepRow* row) {
  std::vector<const Step*> traced;
  std::copy_if(all.begin(), all.end(), std::back_inserter(traced),
               [](const Step* step) { return step->row.traced; });
  // Parts of one kind of step sum up; those of traced and untraced ones would not.
  const std::vector<const Step*>& steps = traced.empty() ? all : traced;
  row->set_traced(!traced.empty());
  row->set_duration_ns(Median(steps, [](const Step& s) { return s.duration_ns(); }));
  for (size_t part = 0; part < std::size(kStepColumns); ++part) {
    auto set = kStepColumns[part].set;
    (row->*set)(Median(steps, [part](const Step& s) { return s.row.part_ns[part]; }));
  }
  row->set_other_ns(Median(steps, [](const Step& s) { return s.other_ns(); }));
}

void FillUse(const std::vector<Step>& steps, View& view, v1::Steps* reply) {
  uint64_t traced_ns = 0, busy_ns = 0;
  for (const Step& step : steps) {
    if (!step.row.traced) continue;
    traced_ns += step.duration_ns();
    busy_ns += step.row.part_ns[kKernel] + step.row.part_ns[kCommunication];
  }
  if (traced_ns == 0) return;
  double used = static_cast<double>(busy_ns) / static_cast<double>(traced_ns);
  KernelQuality quality = QualityOf(view);
  reply->set_gpu_utilization_percent(100 * used);
  reply->set_sm_efficiency_percent(used * quality.multiprocessors);
  reply->set_occupancy_percent(quality.occupancy);
  reply->set_tensor_core_percent(quality.tensor_core);
}

Cell FullCollections(const ProcessSums& sums) {
  Cell full;
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type == EventType::kGcPause &&
        aggregate::GenerationOf(series) == kOldest) {
      full.Append(cell);
    }
  });
  return full;
}

}  // namespace

void FillStepRow(const storage::JobRow& job, const storage::ProcessRow& process,
                 const storage::StepRow& step, StepRow* row) {
  const Step timed{&process, step};
  row->set_pid(process.info.pid());
  row->set_rank(process.info.rank());
  row->set_number(step.number);
  row->set_start_ns(aggregate::AfterStart(step.start_ns, job.info.start_ns()));
  row->set_duration_ns(timed.duration_ns());
  for (size_t part = 0; part < std::size(kStepColumns); ++part) {
    auto set =
        kStepColumns[part].set;  // first: else GCC 12's UBSan checks a wrong index
    (row->*set)(step.part_ns[part]);
  }
  row->set_other_ns(timed.other_ns());
  row->set_traced(step.traced);
}

absl::StatusOr<std::vector<storage::StepRow>> StepsOf(const View& view,
                                                      const ProcessSums& sums) {
  LULL_ASSIGN_OR_RETURN(
      auto rows, view.reader->catalogue().Steps(
                     sums.process.id, view.job.info.start_ns() + view.range.since,
                     Absolute(view.job, view.range.until), 0));
  std::erase_if(rows, [](const storage::StepRow& row) { return row.rested_ns != 0; });
  return rows;
}

absl::Status FillSteps(View& view, v1::ReportReply* reply) {
  v1::Steps* out = reply->mutable_steps();
  const uint32_t top = view.overview ? kStepsOfAnOverview : view.request.top();
  std::vector<Step> steps;
  std::vector<const Step*> warm;
  for (const ProcessSums& sums : view.processes) {
    LULL_ASSIGN_OR_RETURN(auto rows, StepsOf(view, sums));
    for (const storage::StepRow& row : rows) steps.push_back({&sums.process, row});
  }
  for (const Step& step : steps) {
    bool warm_up = steps.size() >= kEnoughSteps && step.row.number <= kWarmUpSteps;
    if (step.timed() && !warm_up) warm.push_back(&step);
  }
  out->set_count(steps.size());
  if (steps.empty()) return FillPhaseParts(view, out);
  out->set_source(SourceName(steps.back().row.source));
  FillMedian(warm, out->mutable_median());
  FillUse(steps, view, out);
  std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) {
    return a.row.start_ns < b.row.start_ns;
  });
  size_t first = top != 0 && steps.size() > top ? steps.size() - top : 0;
  for (size_t i = first; i < steps.size(); ++i) {
    FillStepRow(view.job, *steps[i].process, steps[i].row, out->add_steps());
  }
  return FillPhaseParts(view, out);
}

absl::Status FillCollectionsInSteps(View& view, v1::GcPauses* reply) {
  for (const ProcessSums& sums : view.processes) {
    if (FullCollections(sums).count == 0) continue;
    LULL_ASSIGN_OR_RETURN(auto first,
                          view.reader->catalogue().FirstSteps(sums.process.id, 1));
    if (first.empty()) continue;
    TimeRange in_steps = sums.range;
    in_steps.since = std::max(
        in_steps.since,
        aggregate::AfterStart(first.front().start_ns, view.job.info.start_ns()));
    if (in_steps.since >= in_steps.until) continue;
    LULL_ASSIGN_OR_RETURN(ProcessSums part,
                          LoadSums(*view.reader, view.job, sums.process, in_steps));
    Cell full = FullCollections(part);
    reply->set_full_in_steps_ns(reply->full_in_steps_ns() + full.total_ns);
    reply->set_full_in_steps_count(reply->full_in_steps_count() + full.count);
  }
  return absl::OkStatus();
}

}  // namespace lull::query
