#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "daemon/aggregate/wait_kind.h"
#include "daemon/query/loader_part.h"
#include "daemon/query/reports.h"
#include "daemon/query/rows.h"

namespace lull::query {

absl::Status FillData(View& view, v1::ReportReply* reply) {
  v1::DataLoading* out = reply->mutable_data();
  Names& names = *view.names;
  const bool by_function = view.request.group_by() == v1::GROUP_BY_FUNCTION;
  auto site_of = [&](const Series& series) {
    return by_function ? series.function_site : series.line_site;
  };
  std::map<std::pair<std::string, uint32_t>, Cell> loaders;
  // Waits lie on lines of the data set: whose loader they are of is known of one alone.
  uint64_t blocked_ns = 0;
  bool all_known = true;
  for (const ProcessSums& sums : view.processes) {
    sums.ForEach([&](const Series& series, const Cell& cell) {
      if (cell.count == 0) return;
      if (series.type == EventType::kScope &&
          aggregate::ScopeKindOf(series) != aggregate::ScopeKind::kUser) {
        all_known = all_known && aggregate::IsLoading(series);
        loaders[{LoaderClass(names.ScopePath(series.native_stack)), site_of(series)}]
            .Append(cell);
      } else if (series.type == EventType::kHostWait &&
                 aggregate::WaitKindOf(series) == aggregate::WaitKind::kWithinData) {
        blocked_ns += cell.total_ns;
      }
    });
  }
  auto time = [](const Cell& cell) { return cell.total_ns; };
  for (const auto* loader : Highest(loaders, view.request.top(), time)) {
    const auto& [key, cell] = *loader;
    v1::LoaderRow* row = out->add_loaders();
    row->set_loader(key.first);
    names.FillSite(key.second, row->mutable_site());
    row->set_calls(cell.count);
    row->set_total_ns(cell.total_ns);
    row->set_max_ns(cell.max_ns);
    row->set_blocked_ns(loaders.size() == 1 && all_known
                            ? std::min(cell.total_ns, blocked_ns)
                            : UINT64_MAX);
  }
  return FillLoading(view, out);
}

}  // namespace lull::query
