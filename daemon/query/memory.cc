#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>

#include "daemon/aggregate/growth.h"
#include "daemon/base/status.h"
#include "daemon/query/grouping.h"
#include "daemon/query/memory_parts.h"
#include "daemon/query/reports.h"

namespace lull::query {
namespace {

using aggregate::Allocator;

// Growth is told from here on: less is not worth a line.
constexpr double kMinGrowthBytes = 1 << 20;
constexpr double kMinGrowthShare = 0.01;  // of what is live at the end of the span
constexpr size_t kGrowthSites = 3;

bool ByLive(const Group& a, const Group& b) { return a.live > b.live; }

int32_t DeviceIndexOf(const Series& whole) {
  auto allocator = aggregate::AllocatorOf(whole);
  bool told = allocator == Allocator::kTorchCuda || allocator == Allocator::kTorchOther;
  const DeviceId device = aggregate::DeviceOf(whole);
  return told && device != aggregate::kNoDevice ? static_cast<int32_t>(Number(device))
                                                : -1;
}

// The series of what is reserved beside `whole`, 0 where the allocator never told.
uint32_t ReservedOf(const ProcessSums& sums, const Series& whole) {
  for (size_t id = 1; id < sums.series.size(); ++id) {
    const Series& series = sums.series[id];
    if (series.type == EventType::kTorchReserved && series.variant == whole.variant &&
        series.shape == whole.shape) {
      return static_cast<uint32_t>(id);
    }
  }
  return 0;
}

// Cells of allocations that `whole` consists of, as sites with most bytes first; those
// with none are left out. `live_before`: when their stretch begins.
std::vector<Group> SitesOf(const std::vector<Series>& all,
                           const std::vector<Cell>& cells,
                           const std::vector<int64_t>& live_before, uint32_t whole,
                           v1::GroupBy by) {
  Grouping grouping(by);
  for (size_t id = 1; id < all.size(); ++id) {
    if (!aggregate::IsAllocation(all[id]) || all[id].total_group != whole ||
        aggregate::IsUndrawn(all[id])) {
      continue;
    }
    const Cell& cell = cells[id];
    if (cell.live == 0 && cell.blocks() == 0) continue;
    Group& group = grouping.At(0, all[id]);
    if (cell.live > group.peak) {  // the series that its stack is taken from
      group.peak = cell.live;
      group.longest = all[id];
    }
    group.live += cell.live;
    const bool drawn = aggregate::IsDrawn(all[id]);
    Cell& sum = drawn ? group.drawn : group.sum;
    sum.count += cell.count;
    sum.frees += cell.frees;
    sum.amount2 += cell.amount2;
    // What changed is the difference of two estimates.
    sum.amount +=
        static_cast<uint64_t>(std::max<int64_t>(0, 2 * live_before[id] + cell.live));
    group.estimated |= drawn;
  }
  return grouping.Sorted(ByLive);
}

// An estimate that could as well be of nothing accuses no line of growing.
bool IsSure(const Group& group) {
  return group.live > static_cast<int64_t>(group.error_bytes());
}

// `most`: there was no more, but one drawn block may stand for more.
void FillSite(const Group& group, int64_t most, Names& names, v1::MemorySite* site) {
  names.FillSite(group.site, site->mutable_site());
  const bool over = group.estimated && group.live > most;
  const double share =
      over ? static_cast<double>(most) / static_cast<double>(group.live) : 1;
  site->set_bytes(over ? most : group.live);
  site->set_blocks(std::llround(share * static_cast<double>(group.blocks())));
  site->set_estimated(group.estimated);
  site->set_error_bytes(group.error_bytes());
  names.FillStack(group.longest.python_stack, site->mutable_stack());
  names.FillStack(group.longest.native_stack, site->mutable_native_stack());
}

class RowFiller {
 public:
  explicit RowFiller(View& view) : view_(view) {}

  absl::Status Fill(const ProcessSums& sums,
                    const std::vector<storage::StepMemoryRow>& steps, uint32_t whole,
                    v1::MemoryRow* row) {
    const Series& series = sums.series[whole];
    const uint32_t reserved = ReservedOf(sums, series);
    row->set_pid(sums.process.info.pid());
    row->set_rank(sums.process.info.rank());
    row->set_allocator(aggregate::AllocatorName(aggregate::AllocatorOf(series)));
    row->set_device(DeviceIndexOf(series));
    row->set_live_bytes(sums.LiveAtEnd(whole));
    row->set_peak_bytes(sums.Peak(whole));
    row->set_reserved_known(reserved != 0);
    if (reserved != 0) {
      row->set_reserved_bytes(sums.LiveAtEnd(reserved));
      row->set_reserved_peak_bytes(sums.Peak(reserved));
    }
    std::vector<MemoryPoint> points = PointsOfSteps(view_, steps, whole, reserved);
    LULL_RETURN_IF_ERROR(FillGrowth(sums, points, whole, row));
    if (view_.overview) return absl::OkStatus();
    LULL_RETURN_IF_ERROR(FillPeak(sums, whole, reserved, row));
    row->set_points_are_steps(points.size() > 1);
    if (!row->points_are_steps()) {
      LULL_ASSIGN_OR_RETURN(points,
                            PointsOfTime(view_, sums.process.id, whole, reserved));
    }
    for (const MemoryPoint& point : points) {
      v1::MemoryPoint* out = row->add_points();
      out->set_step(point.step);
      out->set_time_ns(point.time_ns);
      out->set_live_bytes(point.live);
      out->set_reserved_bytes(point.reserved);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status FillPeak(const ProcessSums& sums, uint32_t whole, uint32_t reserved,
                        v1::MemoryRow* row) {
    LULL_ASSIGN_OR_RETURN(Peak peak, FindPeak(view_, sums, whole));
    row->set_peak_bytes(peak.bytes);
    row->set_peak_time_ns(peak.time_ns);
    if (reserved != 0) row->set_reserved_at_peak_bytes(peak.cells[reserved].live);
    int64_t others = peak.bytes;
    const std::vector<int64_t> nothing(peak.cells.size());
    for (const Group& group :
         SitesOf(sums.series, peak.cells, nothing, whole, view_.request.group_by())) {
      auto listed = static_cast<uint32_t>(row->peak_sites_size());
      if (view_.request.top() != 0 && listed == view_.request.top()) break;
      FillSite(group, peak.bytes, *view_.names, row->add_peak_sites());
      others -= group.live;
    }
    // Estimates may come to more than there was.
    row->set_peak_others_bytes(std::max<int64_t>(others, 0));
    return absl::OkStatus();
  }

  absl::Status FillGrowth(const ProcessSums& sums,
                          const std::vector<MemoryPoint>& points, uint32_t whole,
                          v1::MemoryRow* row) {
    std::vector<std::pair<double, double>> values;
    for (const MemoryPoint& point : points) {
      values.emplace_back(static_cast<double>(point.step),
                          static_cast<double>(point.live));
    }
    std::optional<aggregate::Growth> growth = aggregate::SteadyGrowth(values);
    if (!growth) return absl::OkStatus();
    const MemoryPoint& first = points[growth->first];
    const MemoryPoint& last = points[growth->last];
    auto rise = static_cast<double>(last.live - first.live);
    if (rise <
        std::max(kMinGrowthBytes, kMinGrowthShare * static_cast<double>(last.live))) {
      return absl::OkStatus();
    }
    v1::MemoryGrowth* out = row->mutable_growth();
    out->set_bytes_per_step(growth->slope);
    out->set_first_step(first.step);
    out->set_last_step(last.step);
    out->set_bytes(last.live - first.live);
    LULL_ASSIGN_OR_RETURN(ProcessSums span,
                          LoadSums(*view_.reader, view_.job, sums.process,
                                   {first.time_ns, last.time_ns}));
    for (const Group& group : SitesOf(span.series, span.cells, span.live_before, whole,
                                      view_.request.group_by())) {
      if (out->sites_size() == kGrowthSites || group.live <= 0) break;
      if (!IsSure(group)) continue;
      FillSite(group, INT64_MAX, *view_.names, out->add_sites());
    }
    return absl::OkStatus();
  }

  View& view_;
};

void FillRetries(const ProcessSums& sums, Names& names, v1::Memory* reply) {
  uint64_t failed = 0;
  Cell retries;
  uint64_t longest = 0;
  uint32_t site = 0;
  sums.ForEach([&](const Series& series, const Cell& cell) {
    if (series.type == EventType::kDeviceMemory &&
        aggregate::AllocatorOf(series) == Allocator::kCuda &&
        aggregate::IsFailed(series) && !aggregate::IsFree(series)) {
      failed += cell.count;
    }
    if (series.type != EventType::kMallocRetry || cell.empty()) return;
    retries.Append(cell);
    if (cell.total_ns >= longest) {
      longest = cell.total_ns;
      site = series.line_site;
    }
  });
  if (failed == 0 && retries.count == 0) return;
  v1::MallocRetries* out = reply->add_retries();
  out->set_pid(sums.process.info.pid());
  out->set_rank(sums.process.info.rank());
  out->set_failed_calls(failed);
  out->set_retries(retries.count);
  out->set_succeeded(retries.amount2);
  out->set_total_ns(retries.total_ns);
  names.FillSite(site, out->mutable_site());
}

}  // namespace

absl::Status FillMemory(View& view, v1::ReportReply* reply) {
  std::vector<ProcessSums> loaded;
  if (view.phase != v1::PHASE_ALL) {
    for (const ProcessSums& sums : view.processes) {
      LULL_ASSIGN_OR_RETURN(auto all,
                            LoadSums(*view.reader, view.job, sums.process, view.range));
      loaded.push_back(std::move(all));
    }
  }
  const auto& processes = view.phase == v1::PHASE_ALL ? view.processes : loaded;
  v1::Memory* out = reply->mutable_memory();
  RowFiller filler(view);
  for (const ProcessSums& sums : processes) {
    LULL_ASSIGN_OR_RETURN(
        auto steps,
        view.reader->catalogue().All<storage::StepMemoryRow>(sums.process.id));
    std::vector<uint32_t> wholes;
    for (uint32_t id = 1; id < sums.series.size(); ++id) {
      if (sums.series[id].type == EventType::kTotalGroup && sums.Peak(id) > 0) {
        wholes.push_back(id);
      }
    }
    std::stable_sort(wholes.begin(), wholes.end(), [&](uint32_t a, uint32_t b) {
      return sums.Peak(a) > sums.Peak(b);
    });
    for (uint32_t whole : wholes) {
      LULL_RETURN_IF_ERROR(filler.Fill(sums, steps, whole, out->add_rows()));
    }
    FillRetries(sums, *view.names, out);
  }
  out->set_unknown_frees(UnknownFrees(processes));
  return absl::OkStatus();
}

}  // namespace lull::query
