#include "daemon/query/sections.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "daemon/base/status.h"
#include "daemon/query/hot.h"
#include "daemon/query/kernels.h"
#include "daemon/query/late_looks.h"
#include "daemon/query/reports.h"
#include "daemon/query/steps.h"
#include "daemon/query/timeline.h"
#include "daemon/query/totals.h"

namespace lull::query {
namespace {

using v1::ReportReply;

struct SectionRow {
  v1::Section section;
  absl::Status (*fill)(View& view, ReportReply* reply);
  // Others have too many rows for one.
  bool in_overview = false;
};

absl::Status FillWholeTimeline(View& view, ReportReply* reply) {
  return FillTimeline(view, TimelineBounds(), reply->mutable_timeline());
}

constexpr SectionRow kSections[] = {
    {v1::SECTION_SYNCS, FillSyncs, true},
    {v1::SECTION_ALLOCATIONS, FillAllocations, true},
    {v1::SECTION_GC, FillGc, true},
    {v1::SECTION_WAITS, FillWaits, true},
    {v1::SECTION_GAPS, FillGaps, true},
    {v1::SECTION_KERNELS, FillKernels, true},
    {v1::SECTION_STEPS, FillSteps, true},
    {v1::SECTION_MEMORY, FillMemory, true},
    {v1::SECTION_HOT, FillHot},
    {v1::SECTION_REGIONS, FillRegions},
    {v1::SECTION_DATA, FillData},
    {v1::SECTION_OPERATORS, FillOperators},
    {v1::SECTION_TIMELINE, FillWholeTimeline},
    {v1::SECTION_RANKS, FillRanks},
    {v1::SECTION_STACKS, FillNewestStacks},
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

absl::StatusOr<std::vector<ProcessSums>> SampledProcesses(const View& view) {
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
      if (row.in_overview) LULL_RETURN_IF_ERROR(row.fill(view, reply));
    }
    if (HasCollectives(view)) {
      const absl::Status status = FillRanks(view, reply);
      if (!absl::IsFailedPrecondition(status)) LULL_RETURN_IF_ERROR(status);
    }
  }
  for (int section : view.request.sections()) {
    LULL_RETURN_IF_ERROR(FillSection(section, view, reply));
  }
  return WidenForLateLooks(view, reply);
}

}  // namespace lull::query
