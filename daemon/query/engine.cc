#include "daemon/query/engine.h"

#include <limits.h>

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/advice/advice.h"
#include "daemon/base/status.h"
#include "daemon/query/data.h"
#include "daemon/query/explained.h"
#include "daemon/query/gaps.h"
#include "daemon/query/gpu.h"
#include "daemon/query/hot.h"
#include "daemon/query/job_lookup.h"
#include "daemon/query/kernels.h"
#include "daemon/query/loader_workers.h"
#include "daemon/query/memory.h"
#include "daemon/query/names.h"
#include "daemon/query/operators.h"
#include "daemon/query/phase_parts.h"
#include "daemon/query/phases.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/regions.h"
#include "daemon/query/reports.h"
#include "daemon/query/stacks.h"
#include "daemon/query/step_cost.h"
#include "daemon/query/steps.h"
#include "daemon/query/timeline.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using lull::v1::ReportReply;
using lull::v1::ReportRequest;

constexpr uint32_t kStepsOfAnOverview = 5;

// The advice of an overview looks at so many rows of each section at least, so that it
// does not depend on how many are asked for.
constexpr uint32_t kRowsForAdvice = 100;

// What every section is made of.
struct View {
  ReportRequest request;
  bool overview;
  std::unique_ptr<storage::StoreReader> reader;
  storage::JobRow job;
  TimeRange range;  // that is asked for
  lull::v1::Phase phase;
  uint64_t setup_ns;
  std::vector<ProcessSums> processes;  // each in the range, or of the phase
  std::unique_ptr<Names> names;
  std::unique_ptr<Stacks> stacks;
};

// What of the process is shown.
TimeRange PhaseOf(const View& view, std::optional<uint64_t> steady) {
  TimeRange range = view.range;
  if (!steady) return range;
  if (view.phase == lull::v1::PHASE_STEADY) {
    range.since = std::min(std::max(range.since, *steady), range.until);
  } else if (view.phase == lull::v1::PHASE_SETUP) {
    range.until = std::max(std::min(range.until, *steady), range.since);
  }
  return range;
}

absl::Status Syncs(View& view, ReportReply* reply) {
  FillSyncs(view.processes, view.request, *view.names, reply->mutable_syncs());
  return absl::OkStatus();
}

absl::Status Allocations(View& view, ReportReply* reply) {
  FillAllocations(view.processes, view.request, *view.names,
                  reply->mutable_allocations());
  return absl::OkStatus();
}

absl::Status Gc(View& view, ReportReply* reply) {
  FillGc(view.processes, view.request, *view.names, reply->mutable_gc());
  return FillCollectionsInSteps(*view.reader, view.job, view.processes,
                                reply->mutable_gc());
}

absl::Status Waits(View& view, ReportReply* reply) {
  FillWaits(view.processes, view.request, *view.names, *view.stacks,
            reply->mutable_waits());
  return absl::OkStatus();
}

absl::Status Gaps(View& view, ReportReply* reply) {
  FillGaps(view.processes, view.request, *view.names, *view.stacks,
           reply->mutable_gaps());
  if (!view.overview) FillDevices(view.processes, reply->mutable_devices());
  return absl::OkStatus();
}

absl::Status Kernels(View& view, ReportReply* reply) {
  FillKernels(view.processes, view.request, *view.names, reply->mutable_kernels());
  return absl::OkStatus();
}

absl::Status Steps(View& view, ReportReply* reply) {
  LULL_RETURN_IF_ERROR(
      FillSteps(*view.reader, view.job, view.processes, view.range,
                view.overview ? kStepsOfAnOverview : view.request.top(), *view.names,
                reply->mutable_steps()));
  return FillPhaseParts(*view.reader, view.job, view.processes, *view.stacks,
                        reply->mutable_steps());
}

// Of the whole range, set-up included: that is where peaks often lie.
absl::Status Memory(View& view, ReportReply* reply) {
  std::vector<ProcessSums> whole;
  if (view.phase != lull::v1::PHASE_ALL) {
    for (const ProcessSums& sums : view.processes) {
      LULL_ASSIGN_OR_RETURN(auto all,
                            LoadSums(*view.reader, view.job, sums.process, view.range));
      whole.push_back(std::move(all));
    }
  }
  return FillMemory(*view.reader, view.job, whole.empty() ? view.processes : whole,
                    view.request,
                    view.overview ? MemoryDetail::kTotals : MemoryDetail::kAll,
                    *view.names, reply->mutable_memory());
}

// Processes that are shown because they work, and those that were sampled all the same:
// DataLoader workers record nothing. Their set-up is that of the job.
absl::StatusOr<std::vector<ProcessSums>> SampledProcesses(View& view) {
  std::vector<ProcessSums> all = view.processes;
  LULL_ASSIGN_OR_RETURN(auto rows,
                        view.reader->catalogue().All<storage::ProcessRow>(view.job.id));
  for (const storage::ProcessRow& row : rows) {
    const bool shown =
        std::any_of(all.begin(), all.end(),
                    [&](const ProcessSums& sums) { return sums.process.id == row.id; });
    if (shown || row.counters.host_samples().taken() == 0) continue;
    if (!Fits(row, view.request)) continue;
    TimeRange range =
        PhaseOf(view, view.setup_ns != 0 ? std::optional<uint64_t>(view.setup_ns)
                                         : std::nullopt);
    LULL_ASSIGN_OR_RETURN(ProcessSums sums,
                          LoadSums(*view.reader, view.job, row, range));
    all.push_back(std::move(sums));
  }
  return all;
}

absl::Status Hot(View& view, ReportReply* reply) {
  if (view.overview) return absl::OkStatus();
  LULL_ASSIGN_OR_RETURN(auto processes, SampledProcesses(view));
  return FillHot(view.job, processes, view.request, *view.names, *view.stacks,
                 reply->mutable_hot());
}

absl::Status Data(View& view, ReportReply* reply) {
  if (view.overview) return absl::OkStatus();
  FillData(view.processes, view.request, *view.names, reply->mutable_data());
  LULL_ASSIGN_OR_RETURN(auto processes, SampledProcesses(view));
  return FillLoading(*view.reader, view.job, processes, view.request, *view.names,
                     *view.stacks, reply->mutable_data());
}

// Of no overview: it may have very many rows.
absl::Status Regions(View& view, ReportReply* reply) {
  if (view.overview) return absl::OkStatus();
  FillRegions(view.processes, view.request, *view.names, reply->mutable_regions());
  return absl::OkStatus();
}

absl::Status Ops(View& view, ReportReply* reply) {
  if (view.overview) return absl::OkStatus();
  FillOperators(view.processes, view.request, *view.names, reply->mutable_operators());
  return absl::OkStatus();
}

absl::Status Timeline(View& view, ReportReply* reply) {
  if (view.overview) return absl::OkStatus();
  return FillTimeline(*view.reader, view.job, view.processes, view.range, *view.names,
                      reply->mutable_timeline());
}

struct SectionRow {
  lull::v1::Section section;
  absl::Status (*fill)(View& view, ReportReply* reply);
};

constexpr SectionRow kSections[] = {
    {lull::v1::SECTION_SYNCS, Syncs},
    {lull::v1::SECTION_ALLOCATIONS, Allocations},
    {lull::v1::SECTION_GC, Gc},
    {lull::v1::SECTION_WAITS, Waits},
    {lull::v1::SECTION_GAPS, Gaps},
    {lull::v1::SECTION_KERNELS, Kernels},
    {lull::v1::SECTION_STEPS, Steps},
    {lull::v1::SECTION_MEMORY, Memory},
    {lull::v1::SECTION_HOT, Hot},
    {lull::v1::SECTION_REGIONS, Regions},
    {lull::v1::SECTION_DATA, Data},
    {lull::v1::SECTION_OPERATORS, Ops},
    {lull::v1::SECTION_TIMELINE, Timeline},
};

using SteadyTimes = std::vector<std::optional<uint64_t>>;  // by process

// Sets the phase of the view, and says when each process was in its steady state.
absl::StatusOr<SteadyTimes> ChoosePhase(
    const std::vector<storage::ProcessRow>& processes, View& view) {
  const lull::v1::Phase wanted = view.request.phase();
  SteadyTimes steady(processes.size());
  // A profile is of a part of a job that somebody chose: all of it counts.
  if (wanted == lull::v1::PHASE_ALL ||
      (wanted == lull::v1::PHASE_UNSPECIFIED && view.job.info.has_imported())) {
    return steady;
  }
  if (!lull::v1::Phase_IsValid(wanted)) {
    return absl::InvalidArgumentError("this collector does not know that phase");
  }
  for (size_t i = 0; i < processes.size(); ++i) {
    LULL_ASSIGN_OR_RETURN(steady[i], SteadySince(*view.reader, view.job, processes[i],
                                                 EndOf(view.job, processes[i])));
    view.setup_ns = std::max(view.setup_ns, steady[i].value_or(0));
  }
  if (wanted != lull::v1::PHASE_UNSPECIFIED) {
    if (view.setup_ns == 0) {
      return absl::FailedPreconditionError(
          "set-up cannot be told from the steady state: no process marks ten steps or "
          "more, or the job is too short; use --since and --until");
    }
    view.phase = wanted;
  } else if (view.setup_ns != 0 && view.range.all()) {
    view.phase = lull::v1::PHASE_STEADY;
  }
  return steady;
}

absl::StatusOr<View> Load(storage::Store& store, const ReportRequest& request) {
  View view{.request = request,
            .overview = request.sections().empty(),
            .reader = nullptr,
            .job = {},
            .range = RangeOf(request),
            .phase = lull::v1::PHASE_ALL,
            .setup_ns = 0,
            .processes = {},
            .names = nullptr,
            .stacks = nullptr};
  if (view.range.since > view.range.until) {
    return absl::InvalidArgumentError("the end of the range lies before its start");
  }
  LULL_ASSIGN_OR_RETURN(view.reader, store.NewReader());
  LULL_ASSIGN_OR_RETURN(view.job, FindJob(*view.reader, request.job()));
  LULL_ASSIGN_OR_RETURN(auto all,
                        view.reader->catalogue().All<storage::ProcessRow>(view.job.id));
  auto selected = SelectProcesses(all, request);
  LULL_ASSIGN_OR_RETURN(auto steady, ChoosePhase(selected, view));
  for (size_t i = 0; i < selected.size(); ++i) {
    TimeRange range = PhaseOf(view, steady[i]);
    LULL_ASSIGN_OR_RETURN(ProcessSums sums,
                          LoadSums(*view.reader, view.job, selected[i], range));
    view.processes.push_back(std::move(sums));
  }
  if (view.processes.empty() && (request.has_pid() || request.has_rank())) {
    return absl::NotFoundError("no process of this job has that rank or pid");
  }
  view.names = std::make_unique<Names>(*view.reader, view.job.id);
  view.stacks = std::make_unique<Stacks>(*view.reader, view.job.id);
  if (!request.region().empty() &&
      !RegionFilter(request.region(), *view.names).HoldsAny(view.processes)) {
    return absl::NotFoundError(
        absl::StrCat("no region of this job is called ", request.region(),
                     " (one is known when it ends); lull regions lists them"));
  }
  if (view.overview && request.top() > 0) {
    view.request.set_top(std::max(request.top(), kRowsForAdvice));
  }
  return view;
}

absl::Status FillSection(int section, View& view, ReportReply* reply) {
  const SectionRow* row =
      std::find_if(std::begin(kSections), std::end(kSections),
                   [&](const SectionRow& one) { return one.section == section; });
  if (row == std::end(kSections)) {
    return absl::InvalidArgumentError(
        absl::StrCat("this collector has no section ", section,
                     " of a report; it is older than the CLI that asks"));
  }
  return row->fill(view, reply);
}

absl::Status FillSections(View& view, ReportReply* reply) {
  if (view.overview) {
    for (const SectionRow& row : kSections) {
      LULL_RETURN_IF_ERROR(row.fill(view, reply));
    }
  }
  for (int section : view.request.sections()) {
    LULL_RETURN_IF_ERROR(FillSection(section, view, reply));
  }
  return absl::OkStatus();
}

// Of the view that the overview was made of.
absl::Status FillDetails(View& view, ReportReply* reply) {
  const ReportRequest asked = view.request;
  view.overview = false;
  for (const ReportRequest::Detail& detail : asked.details()) {
    view.request.set_group_by(detail.group_by());
    view.request.set_top(detail.top());
    ReportReply* part = reply->add_details();
    const absl::Status status = FillSection(detail.section(), view, part);
    if (absl::IsFailedPrecondition(status)) {  // this job has none of it
      part->set_untold(std::string(status.message()));
    } else {
      LULL_RETURN_IF_ERROR(status);
    }
  }
  view.request = asked;
  return absl::OkStatus();
}

// What every reply has, and the overview has said.
void FillCommonParts(ReportReply* reply) {
  for (ReportReply& detail : *reply->mutable_details()) {
    *detail.mutable_job() = reply->job();
    *detail.mutable_losses() = reply->losses();
    *detail.mutable_overhead() = reply->overhead();
    *detail.mutable_gpu() = reply->gpu();
    detail.mutable_gpu()->clear_spans();
    detail.set_phase(reply->phase());
    detail.set_setup_ns(reply->setup_ns());
  }
}

template <typename Rows>
void Cut(uint32_t top, Rows* rows) {
  int most = static_cast<int>(std::min<uint32_t>(top, INT_MAX));
  if (top > 0 && rows->size() > most) {
    rows->DeleteSubrange(most, rows->size() - most);
  }
}

void CutRows(uint32_t top, ReportReply* reply) {
  Cut(top, reply->mutable_syncs()->mutable_sync_points());
  Cut(top, reply->mutable_allocations()->mutable_allocation_sites());
  Cut(top, reply->mutable_gc()->mutable_gc_pauses());
  Cut(top, reply->mutable_waits()->mutable_host_waits());
  Cut(top, reply->mutable_gaps()->mutable_gaps());
  Cut(top, reply->mutable_kernels()->mutable_kernels());
}

void FillOverview(uint32_t top, View& view, ReportReply* reply) {
  for (const ProcessSums& sums : view.processes) {
    FillProcess(view.job, sums, reply->add_processes());
  }
  reply->set_launches(CountLaunches(view.processes));
  FillDevices(view.processes, reply->mutable_devices());
  FillNonFinite(view.job, view.processes, *view.names, reply->mutable_non_finite());
  *reply->mutable_shares() = SharesOf(*reply);
  *reply->mutable_advice() = WhatToChangeFirst(*reply);
  CutRows(top, reply);
}

}  // namespace

absl::Status ListJobs(storage::Store& store, const HasRelay& has_relay,
                      const lull::v1::ListJobsRequest& request,
                      lull::v1::ListJobsReply* reply) {
  LULL_ASSIGN_OR_RETURN(auto reader, store.NewReader());
  std::vector<storage::JobRow> damaged;
  LULL_ASSIGN_OR_RETURN(auto jobs, reader->catalogue().Jobs(request.limit(), &damaged));
  for (const storage::JobRow& job : damaged) reply->add_damaged_jobs(job.info.id());
  for (const storage::JobRow& job : jobs) {
    lull::v1::Job filled;
    absl::Status status = FillJob(*reader, job, has_relay(job.info.id()), &filled);
    if (absl::IsDataLoss(status)) {
      reply->add_damaged_jobs(job.info.id());
      continue;
    }
    LULL_RETURN_IF_ERROR(status);
    *reply->add_jobs() = std::move(filled);
  }
  return absl::OkStatus();
}

absl::Status Report(storage::Store& store, const HasRelay& has_relay,
                    const ReportRequest& request, ReportReply* reply) {
  LULL_ASSIGN_OR_RETURN(View view, Load(store, request));
  FillGpu(view.job, view.processes, *view.names, reply->mutable_gpu());
  reply->mutable_gpu()->set_explained_ns(
      ExplainedNs(view.processes, *view.names, *view.stacks));
  LULL_RETURN_IF_ERROR(FillSections(view, reply));
  if (view.overview) {
    FillOverview(request.top(), view, reply);
    LULL_RETURN_IF_ERROR(FillDetails(view, reply));
  }
  reply->set_phase(view.phase);
  reply->set_setup_ns(view.setup_ns);
  LULL_RETURN_IF_ERROR(view.names->status());
  LULL_RETURN_IF_ERROR(view.stacks->status());
  LULL_RETURN_IF_ERROR(
      FillLosses(*view.reader, view.job, request, reply->mutable_losses()));
  FillOverhead(view.job, view.processes, reply->mutable_overhead());
  if (!view.job.info.has_imported()) {  // of a trace nobody knows it
    LULL_RETURN_IF_ERROR(
        FillStepCost(*view.reader, view.processes, reply->mutable_overhead()));
  }
  LULL_RETURN_IF_ERROR(FillJob(*view.reader, view.job, has_relay(view.job.info.id()),
                               reply->mutable_job()));
  FillCommonParts(reply);
  return absl::OkStatus();
}

}  // namespace lull::query
