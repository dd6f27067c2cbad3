#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "daemon/advice/verdict.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {
namespace {

struct Region {
  Cell sum;
  Series longest;
  uint64_t traced_ns = 0;
  uint64_t busy_ns = 0;
  std::array<uint64_t, kCauses> idle_ns = {};
  std::map<std::string, std::unique_ptr<Region>> inner;

  // For a region that has not ended itself: the time of those within it.
  uint64_t Time() const {
    uint64_t time = sum.total_ns;
    if (sum.count > 0) return time;
    for (const auto& [name, region] : inner) time += region->Time();
    return time;
  }
};

void Add(const Series& series, const Cell& cell, Region& region) {
  switch (series.type) {
    case EventType::kScope:
      if (cell.max_ns >= region.sum.max_ns) region.longest = series;
      return region.sum.Append(cell);
    case EventType::kRegionTraced:
      region.traced_ns += cell.total_ns;
      region.busy_ns += cell.amount;
      return;
    default:
      if (const auto cause = aggregate::CauseOf(series); cause < kCauses) {
        region.idle_ns[cause] += cell.total_ns;
      }
  }
}

bool IsOfRegions(EventType type) {
  return type == EventType::kScope || type == EventType::kRegionTraced ||
         type == EventType::kRegionIdle;
}

class Rows {
 public:
  Rows(View& view, v1::Regions* reply)
      : by_function_(view.request.group_by() == v1::GROUP_BY_FUNCTION),
        names_(*view.names),
        reply_(reply) {}

  // Leaves out regions of less time.
  void Write(const Region& around, uint64_t least_ns) {
    std::vector<std::pair<const std::string*, const Region*>> sorted;
    for (const auto& [name, region] : around.inner) {
      sorted.emplace_back(&name, region.get());
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
      return a.second->Time() > b.second->Time();
    });
    for (const auto& [name, region] : sorted) {
      if (region->sum.count > 0 && region->sum.total_ns >= least_ns) {
        Fill(*name, *region, reply_->add_regions());
      }
      path_.push_back(*name);
      Write(*region, least_ns);
      path_.pop_back();
    }
  }

 private:
  void Fill(const std::string& name, const Region& region, v1::RegionRow* row) {
    row->set_name(name);
    for (const std::string& outer : path_) row->add_path(outer);
    row->set_count(region.sum.count);
    row->set_total_ns(region.sum.total_ns);
    row->set_max_ns(region.sum.max_ns);
    const Series& longest = region.longest;
    names_.FillSite(by_function_ ? longest.function_site : longest.line_site,
                    row->mutable_site());
    row->set_traced_ns(region.traced_ns);
    row->set_gpu_busy_ns(region.busy_ns);
    for (size_t cause = 0; cause < kCauses; ++cause) {
      if (region.idle_ns[cause] == 0) continue;
      v1::CauseRow* idle = row->add_causes();
      idle->set_cause(static_cast<v1::GapCause>(cause));
      idle->set_total_ns(region.idle_ns[cause]);
    }
    SortByTime(row->mutable_causes());
  }

  const bool by_function_;
  Names& names_;
  v1::Regions* reply_;
  std::vector<std::string> path_;
};

void AppendTimes(const Region& around, std::vector<uint64_t>* times) {
  for (const auto& [name, region] : around.inner) {
    if (region->sum.count > 0) times->push_back(region->sum.total_ns);
    AppendTimes(*region, times);
  }
}

}  // namespace

absl::Status FillRegions(View& view, v1::ReportReply* reply) {
  v1::Regions* out = reply->mutable_regions();
  Region all;
  for (const ProcessSums& sums : view.processes) {
    const v1::ProcessCounters& counters = sums.process.counters;
    out->set_unnamed(out->unnamed() + counters.scopes_unnamed());
    out->set_unopened(out->unopened() + counters.scopes_unopened());
    if (counters.scope_hook() == v1::SCOPE_HOOK_STATE_PENDING) {
      out->set_pending(out->pending() + 1);
    }
    if (counters.scope_hook() == v1::SCOPE_HOOK_STATE_UNAVAILABLE) {
      out->set_unavailable(out->unavailable() + 1);
    }
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (!IsOfRegions(series.type) || cell.empty() || series.native_stack == 0) return;
      Region* region = &all;
      for (const std::string& name : view.names->ScopePath(series.native_stack)) {
        std::unique_ptr<Region>& inner = region->inner[name];
        if (inner == nullptr) inner = std::make_unique<Region>();
        region = inner.get();
      }
      Add(series, cell, *region);
    });
  }
  uint64_t least_ns = 0;
  std::vector<uint64_t> times;
  AppendTimes(all, &times);
  const uint32_t top = view.request.top();
  if (top != 0 && times.size() > top) {
    std::nth_element(times.begin(), times.begin() + top - 1, times.end(),
                     std::greater<>());
    least_ns = times[top - 1];
  }
  Rows(view, out).Write(all, least_ns);
  return absl::OkStatus();
}

}  // namespace lull::query
