#include "daemon/ranks/by_ends.h"

#include <algorithm>

namespace lull::ranks {

std::optional<uint64_t> SpreadOfEnds(const std::vector<std::vector<Ended>>& ranks) {
  const size_t count = ranks.front().size();
  if (count == 0) return std::nullopt;
  uint64_t spread_ns = 0;
  for (size_t i = 0; i < count; ++i) {
    uint64_t first_ns = UINT64_MAX, last_ns = 0;
    for (const std::vector<Ended>& rank : ranks) {
      if (rank.size() != count || rank[i].function != ranks.front()[i].function) {
        return std::nullopt;
      }
      first_ns = std::min(first_ns, rank[i].end_ns);
      last_ns = std::max(last_ns, rank[i].end_ns);
    }
    spread_ns = std::max(spread_ns, last_ns - first_ns);
  }
  return spread_ns;
}

}  // namespace lull::ranks
