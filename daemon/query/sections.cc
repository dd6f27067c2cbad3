#include "daemon/query/sections.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/query/gpu.h"
#include "daemon/query/hot.h"
#include "daemon/query/kernels.h"
#include "daemon/query/reports.h"
#include "daemon/query/steps.h"
#include "daemon/query/timeline.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using v1::ReportReply;

constexpr uint32_t kStepsOfAnOverview = 5;

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

// For the whole range with set-up, because peaks often lie there.
absl::Status Memory(View& view, ReportReply* reply) {
  std::vector<ProcessSums> whole;
  if (view.phase != v1::PHASE_ALL) {
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

// Not in an overview: there may be very many rows.
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
  v1::Section section;
  absl::Status (*fill)(View& view, ReportReply* reply);
};

constexpr SectionRow kSections[] = {
    {v1::SECTION_SYNCS, Syncs},
    {v1::SECTION_ALLOCATIONS, Allocations},
    {v1::SECTION_GC, Gc},
    {v1::SECTION_WAITS, Waits},
    {v1::SECTION_GAPS, Gaps},
    {v1::SECTION_KERNELS, Kernels},
    {v1::SECTION_STEPS, Steps},
    {v1::SECTION_MEMORY, Memory},
    {v1::SECTION_HOT, Hot},
    {v1::SECTION_REGIONS, Regions},
    {v1::SECTION_DATA, Data},
    {v1::SECTION_OPERATORS, Ops},
    {v1::SECTION_TIMELINE, Timeline},
};

}  // namespace

TimeRange PhaseOf(const View& view, std::optional<uint64_t> steady) {
  TimeRange range = view.range;
  if (!steady) return range;
  if (view.phase == v1::PHASE_STEADY) {
    range.since = std::min(std::max(range.since, *steady), range.until);
  } else if (view.phase == v1::PHASE_SETUP) {
    range.until = std::max(std::min(range.until, *steady), range.since);
  }
  return range;
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

}  // namespace lull::query
