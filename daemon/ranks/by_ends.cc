#include "daemon/ranks/by_ends.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace lull::ranks {
namespace {

// A set of ranks is often on a stream if it is there at so many of its kernels: at the
// edge of a window of five steps with two collectives each a rank is missing at a
// tenth.
constexpr double kOftenShare = 0.15;

struct Place {
  uint32_t function = 0;
  uint64_t end_ns = 0;
  size_t rank = 0;
  size_t index = 0;
  uint32_t stream = 0;
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

// Empty where a rank is in it twice, or alone, or ends are farther apart than those of
// one collective.
Set SetOf(const std::vector<Place>& cluster, uint64_t apart_ns) {
  if (cluster.size() < 2) return {};
  if (cluster.back().end_ns - cluster.front().end_ns > 2 * apart_ns) return {};
  Set set;
  for (const Place& place : cluster) set.push_back(place.rank);
  std::sort(set.begin(), set.end());
  return std::adjacent_find(set.begin(), set.end()) == set.end() ? set : Set{};
}

using Stream = std::pair<size_t, uint32_t>;  // of a rank

// Whose kernels end together on each stream; none where nobody's often do.
std::map<Stream, Set> Communicators(const std::vector<std::vector<Place>>& clusters,
                                    uint64_t apart_ns) {
  struct Seen {
    uint64_t kernels = 0;
    std::map<Set, uint64_t> sets;
  };
  std::map<Stream, Seen> seen;
  for (const std::vector<Place>& cluster : clusters) {
    const Set set = SetOf(cluster, apart_ns);
    for (const Place& place : cluster) {
      Seen& stream = seen[{place.rank, place.stream}];
      ++stream.kernels;
      if (!set.empty()) ++stream.sets[set];
    }
  }
  std::map<Stream, Set> found;
  for (const auto& [stream, all] : seen) {
    Set& smallest = found[stream];
    for (const auto& [set, times] : all.sets) {
      if (static_cast<double>(times) < kOftenShare * static_cast<double>(all.kernels))
        continue;
      if (smallest.empty() || set.size() < smallest.size()) smallest = set;
    }
  }
  return found;
}

}  // namespace

Together ByEnds(const std::vector<std::vector<Ended>>& ranks, uint64_t apart_ns) {
  Together found;
  std::vector<Place> places;
  for (size_t r = 0; r < ranks.size(); ++r) {
    found.ranks.emplace_back(ranks[r].size());
    for (size_t i = 0; i < ranks[r].size(); ++i) {
      const Ended& kernel = ranks[r][i];
      places.push_back({kernel.function, kernel.end_ns, r, i, kernel.stream});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.function, a.end_ns, a.rank) <
           std::tie(b.function, b.end_ns, b.rank);
  });
  const std::vector<std::vector<Place>> clusters = Clusters(places, apart_ns);
  const std::map<Stream, Set> communicators = Communicators(clusters, apart_ns);
  std::map<Set, uint32_t> groups;
  uint64_t number = 0;
  for (const std::vector<Place>& cluster : clusters) {
    std::map<Set, std::vector<Place>> parts;
    for (const Place& place : cluster) {
      const Set& set = communicators.at({place.rank, place.stream});
      if (!set.empty()) parts[set].push_back(place);
    }
    for (const auto& [set, part] : parts) {
      if (SetOf(part, apart_ns) != set) continue;
      const auto group = static_cast<uint32_t>(groups.size() + 1);
      const Identity identity{++number, static_cast<uint32_t>(set.size()),
                              groups.try_emplace(set, group).first->second};
      for (const Place& place : part) found.ranks[place.rank][place.index] = identity;
      found.spread_ns =
          std::max(found.spread_ns, part.back().end_ns - part.front().end_ns);
    }
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
