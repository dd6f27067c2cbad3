#include "daemon/ranks/by_ends.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lull::ranks {
namespace {

// A set of ranks is a communicator if so much of what any of its ranks does with a
// function is done by that very set: at the edge of a window of five steps with two
// collectives each it is a tenth.
constexpr double kLeastShare = 0.15;

struct Place {
  uint32_t function = 0;
  uint64_t end_ns = 0;
  size_t rank = 0;
  size_t index = 0;
};

using Set = std::vector<size_t>;  // ranks, in order

// Of places in the order of functions and ends.
std::vector<std::vector<Place>> Clusters(const std::vector<Place>& places,
                                         uint64_t apart_ns) {
  std::vector<std::vector<Place>> clusters;
  for (const Place& place : places) {
    const bool joins = !clusters.empty() &&
                       clusters.back().back().function == place.function &&
                       place.end_ns - clusters.back().back().end_ns <= apart_ns;
    if (!joins) clusters.emplace_back();
    clusters.back().push_back(place);
  }
  return clusters;
}

// Empty where a rank is in it twice, or ends are farther apart than those of one
// collective.
Set SetOf(const std::vector<Place>& cluster, uint64_t apart_ns) {
  if (cluster.back().end_ns - cluster.front().end_ns > 2 * apart_ns) return {};
  Set set;
  for (const Place& place : cluster) set.push_back(place.rank);
  std::sort(set.begin(), set.end());
  if (std::adjacent_find(set.begin(), set.end()) != set.end()) return {};
  return set.size() < 2 ? Set{} : set;
}

}  // namespace

Together ByEnds(const std::vector<std::vector<Ended>>& ranks, uint64_t apart_ns) {
  Together found;
  std::vector<Place> places;
  for (size_t r = 0; r < ranks.size(); ++r) {
    found.ranks.emplace_back(ranks[r].size());
    for (size_t i = 0; i < ranks[r].size(); ++i) {
      places.push_back({ranks[r][i].function, ranks[r][i].end_ns, r, i});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.function, a.end_ns, a.rank) <
           std::tie(b.function, b.end_ns, b.rank);
  });
  const std::vector<std::vector<Place>> clusters = Clusters(places, apart_ns);
  std::map<std::pair<uint32_t, Set>, uint64_t> together;  // by function and set
  std::map<std::pair<uint32_t, size_t>, uint64_t> all;    // by function and rank
  for (const std::vector<Place>& cluster : clusters) {
    for (const Place& place : cluster) ++all[{place.function, place.rank}];
    const Set set = SetOf(cluster, apart_ns);
    if (!set.empty()) ++together[{cluster.front().function, set}];
  }
  std::map<Set, uint32_t> groups;
  uint64_t number = 0;
  for (const std::vector<Place>& cluster : clusters) {
    const uint32_t function = cluster.front().function;
    const Set set = SetOf(cluster, apart_ns);
    if (set.empty()) continue;
    const auto times = static_cast<double>(together[{function, set}]);
    const bool known = std::all_of(set.begin(), set.end(), [&](size_t rank) {
      return times >= kLeastShare * static_cast<double>(all[{function, rank}]);
    });
    if (!known) continue;
    const auto group = static_cast<uint32_t>(groups.size() + 1);
    const Identity identity{++number, static_cast<uint32_t>(set.size()),
                            groups.try_emplace(set, group).first->second};
    for (const Place& place : cluster) found.ranks[place.rank][place.index] = identity;
    found.spread_ns =
        std::max(found.spread_ns, cluster.back().end_ns - cluster.front().end_ns);
  }
  return found;
}

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
