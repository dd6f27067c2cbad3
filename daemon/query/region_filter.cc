#include "daemon/query/region_filter.h"

#include <algorithm>

namespace lull::query {

bool RegionFilter::Holds(uint32_t scope_stack) {
  auto [it, fresh] = known_.try_emplace(scope_stack, false);
  if (!fresh) return it->second;
  const std::vector<std::string> path = names_.ScopePath(scope_stack);
  return it->second = std::find(path.begin(), path.end(), region_) != path.end();
}

bool RegionFilter::HoldsAny(const std::vector<ProcessSums>& processes) {
  for (const ProcessSums& sums : processes) {
    for (const Series& series : sums.series) {
      if (series.type == EventType::kScope && series.native_stack != 0 &&
          Holds(series.native_stack)) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace lull::query
