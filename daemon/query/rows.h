// Rows of a reply in their order, and not more of them than are asked for.
#pragma once

#include <algorithm>
#include <climits>
#include <cstddef>
#include <vector>

namespace lull::query {

// `top` rows at most, 0 for all.
template <typename Row>
void Cut(size_t top, std::vector<Row>* rows) {
  if (top != 0 && rows->size() > top) rows->resize(top);
}
template <typename Rows>
void Cut(size_t top, Rows* rows) {
  const int most = static_cast<int>(std::min<size_t>(top, INT_MAX));
  if (top != 0 && rows->size() > most) {
    rows->DeleteSubrange(most, rows->size() - most);
  }
}

// The `top` entries of a map with the highest rank(value), highest first.
template <typename Map, typename Rank>
std::vector<const typename Map::value_type*> Highest(const Map& map, size_t top,
                                                     Rank rank) {
  std::vector<const typename Map::value_type*> sorted;
  for (const auto& entry : map) sorted.push_back(&entry);
  std::stable_sort(sorted.begin(), sorted.end(), [&](const auto* a, const auto* b) {
    return rank(a->second) > rank(b->second);
  });
  Cut(top, &sorted);
  return sorted;
}

// Those that took most time come first.
template <typename Rows>
void SortByTime(Rows* rows) {
  std::stable_sort(rows->begin(), rows->end(), [](const auto& a, const auto& b) {
    return a.total_ns() > b.total_ns();
  });
}

}  // namespace lull::query
