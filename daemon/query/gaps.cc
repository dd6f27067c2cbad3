#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "daemon/advice/verdict.h"
#include "daemon/query/doing.h"
#include "daemon/query/gpu.h"
#include "daemon/query/region_filter.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

// What makes two idle stretches one row, in the order of Key: cause, API, before,
// after, culprit (a site, or the two stacks).
using Key = std::array<uint32_t, 6>;

struct Row {
  Cell sum;
  Series longest;
  Doing doing;
  std::map<uint32_t, uint64_t> regions;  // time by the names of the region
};

constexpr size_t kMostRegions = 5;

Key KeyOf(const Series& s, v1::GroupBy by) {
  switch (by) {
    case v1::GROUP_BY_FUNCTION:
      return {aggregate::CauseOf(s), s.api,           s.before_function,
              s.after_function,      s.function_site, 0};
    case v1::GROUP_BY_STACK:
      return {aggregate::CauseOf(s), s.api,          s.before_line,
              s.after_line,          s.python_stack, s.native_stack};
    default:
      return {aggregate::CauseOf(s), s.api,       s.before_line,
              s.after_line,          s.line_site, 0};
  }
}

void FillRegions(const std::map<uint32_t, uint64_t>& regions, Names& names,
                 v1::GapRow* row) {
  for (const auto* region : Highest(regions, kMostRegions, std::identity())) {
    const auto [stack, time_ns] = *region;
    std::vector<std::string> path = names.ScopePath(stack);
    if (path.empty()) continue;
    v1::GapRegion* out = row->add_regions();
    out->set_name(path.back());
    for (size_t i = 0; i + 1 < path.size(); ++i) out->add_path(path[i]);
    out->set_total_ns(time_ns);
  }
}

void FillRow(const Row& from, View& view, v1::GapRow* row) {
  Names& names = *view.names;
  const bool by_function = view.request.group_by() == v1::GROUP_BY_FUNCTION;
  const Series& s = from.longest;
  row->set_cause(static_cast<v1::GapCause>(aggregate::CauseOf(s)));
  names.FillSite(by_function ? s.before_function : s.before_line,
                 row->mutable_before());
  names.FillSite(by_function ? s.after_function : s.after_line, row->mutable_after());
  names.FillSite(by_function ? s.function_site : s.line_site, row->mutable_culprit());
  row->set_culprit_api(names.Api(s.api));
  row->set_count(from.sum.count);
  row->set_total_ns(from.sum.total_ns);
  row->set_max_ns(from.sum.max_ns);
  names.FillStack(s.python_stack, row->mutable_stack());
  names.FillStack(s.native_stack, row->mutable_native_stack());
  // Who asks for everything adds up lines: what is left out would be missing.
  const size_t most = view.request.top() == 0 ? SIZE_MAX : kMostDoing;
  if (!from.doing.empty()) from.doing.Fill(most, *view.stacks, row);
  FillRegions(from.regions, names, row);
}

}  // namespace

void FillCauses(const View& view, RegionFilter& filter, v1::Gaps* reply) {
  std::array<Cell, kCauses> causes = {};
  for (const ProcessSums& sums : view.processes) {
    filter.ForEach(sums, EventType::kIdle, [&](const Series& series, const Cell& cell) {
      if (const auto cause = aggregate::CauseOf(series); cause < kCauses) {
        causes[cause].Append(cell);
      }
    });
  }
  for (size_t cause = 0; cause < kCauses; ++cause) {
    if (causes[cause].empty()) continue;
    v1::CauseRow* row = reply->add_causes();
    row->set_cause(static_cast<v1::GapCause>(cause));
    row->set_count(causes[cause].count);
    row->set_total_ns(causes[cause].total_ns);
    row->set_max_ns(causes[cause].max_ns);
  }
  SortByTime(reply->mutable_causes());
}

absl::Status FillGaps(View& view, v1::ReportReply* reply) {
  const v1::ReportRequest& request = view.request;
  v1::Gaps* out = reply->mutable_gaps();
  RegionFilter filter(request.region(), *view.names);
  out->set_region(request.region());
  FillCauses(view, filter, out);
  std::map<Key, Row> rows;
  for (const ProcessSums& sums : view.processes) {
    filter.ForEach(sums, EventType::kIdle, [&](const Series& series, const Cell& cell) {
      auto [it, fresh] = rows.try_emplace(KeyOf(series, request.group_by()));
      if (fresh || cell.max_ns > it->second.sum.max_ns) it->second.longest = series;
      it->second.sum.Append(cell);
    });
  }
  auto row_of = [&](const ProcessSums& sums, uint32_t series) -> Row* {
    if (series >= sums.series.size()) return nullptr;
    const Series& idle = sums.series[series];
    if (idle.type != EventType::kIdle) return nullptr;
    auto it = rows.find(KeyOf(idle, request.group_by()));
    return it == rows.end() ? nullptr : &it->second;
  };
  for (const ProcessSums& sums : view.processes) {
    filter.ForEach(sums, EventType::kGapSample,
                   [&](const Series& sample, const Cell& cell) {
                     const uint32_t gap = aggregate::GapOf(sample);
                     if (Row* row = cell.count > 0 ? row_of(sums, gap) : nullptr) {
                       row->doing.Add(sums.series[gap], sample, cell, *view.names);
                     }
                   });
    sums.ForEach([&](const Series& part, const Cell& cell) {
      if (part.type != EventType::kRegionGap || cell.total_ns == 0) return;
      if (!filter.all() && !filter.Holds(part.native_stack)) return;
      if (Row* row = row_of(sums, aggregate::WholeOf(part))) {
        row->regions[part.native_stack] += cell.total_ns;
      }
    });
  }
  auto time = [](const Row& row) { return row.sum.total_ns; };
  for (const auto* row : Highest(rows, request.top(), time)) {
    FillRow(row->second, view, out->add_gaps());
  }
  if (!view.overview) FillDevices(view, reply);
  return absl::OkStatus();
}

}  // namespace lull::query
