#include "daemon/query/grouping.h"

namespace lull::query {

Group& Grouping::At(uint32_t label, const Series& series) {
  Key key{label, series.line_site, 0};
  uint32_t site = series.line_site;
  if (by_ == v1::GROUP_BY_FUNCTION) {
    key.first = site = series.function_site;
  } else if (by_ == v1::GROUP_BY_STACK) {
    key.first = series.python_stack;
    key.second = series.native_stack;
  }
  auto [it, fresh] = groups_.try_emplace(key);
  if (fresh) {
    it->second.label = label;
    it->second.site = site;
    it->second.longest = series;
  }
  return it->second;
}

void Grouping::Add(uint32_t label, const Series& series, const Cell& cell) {
  Group& group = At(label, series);
  if (cell.max_ns > group.sum.max_ns) group.longest = series;
  if (aggregate::IsDrawn(series)) {
    group.drawn.Append(cell);
    group.estimated = true;
  } else {
    group.sum.Append(cell);
  }
  if (aggregate::IsLoading(series)) group.loads += cell.count;
}

}  // namespace lull::query
