#include "daemon/query/data.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/loader_workers.h"

namespace lull::query {
namespace {

using aggregate::Cell;
using aggregate::EventType;
using aggregate::Series;

}  // namespace

void FillData(const std::vector<ProcessSums>& processes,
              const lull::v1::ReportRequest& request, Names& names,
              lull::v1::DataLoading* reply) {
  const bool by_function = request.group_by() == lull::v1::GROUP_BY_FUNCTION;
  auto site_of = [&](const Series& series) {
    return by_function ? series.function_site : series.line_site;
  };
  std::map<std::pair<std::string, uint32_t>, Cell> loaders;
  // Waits lie on lines of the data set: whose loader they are of is known of one alone.
  uint64_t blocked_ns = 0;
  bool all_known = true;
  for (const ProcessSums& sums : processes) {
    for (size_t id = 1; id < sums.series.size(); ++id) {
      const Series& series = sums.series[id];
      const Cell& cell = sums.cells[id];
      if (cell.count == 0) continue;
      if (series.type == EventType::kScope &&
          aggregate::ScopeKindOf(series) != aggregate::ScopeKind::kUser) {
        all_known = all_known && aggregate::IsLoading(series);
        loaders[{LoaderClass(names.ScopePath(series.native_stack)), site_of(series)}]
            .Append(cell);
      } else if (series.type == EventType::kHostWait &&
                 aggregate::WaitKindOf(series) == aggregate::WaitKind::kWithinData) {
        blocked_ns += cell.total_ns;
      }
    }
  }
  std::vector<std::pair<std::pair<std::string, uint32_t>, Cell>> sorted(loaders.begin(),
                                                                        loaders.end());
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return a.second.total_ns > b.second.total_ns;
  });
  if (request.top() != 0 && sorted.size() > request.top()) sorted.resize(request.top());
  for (const auto& [key, cell] : sorted) {
    lull::v1::LoaderRow* row = reply->add_loaders();
    row->set_loader(key.first);
    names.FillSite(key.second, row->mutable_site());
    row->set_calls(cell.count);
    row->set_total_ns(cell.total_ns);
    row->set_max_ns(cell.max_ns);
    row->set_blocked_ns(loaders.size() == 1 && all_known
                            ? std::min(cell.total_ns, blocked_ns)
                            : UINT64_MAX);
  }
}

}  // namespace lull::query
