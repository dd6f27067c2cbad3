#include "daemon/ranks/by_ends.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace lull::ranks {
namespace {

// A set of ranks is often on a stream if it is there at so many of its kernels: some
// kernels of a rank may have been lost.
constexpr double kOftenShare = 0.15;
// A set is none of a communicator if others say so at so many of its kernels.
constexpr double kContradictedShare = 0.02;
constexpr int kMostRounds = 10;

struct Place {
  uint32_t function = 0;
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  size_t rank = 0;
  size_t index = 0;
  uint32_t stream = 0;  // of all ranks', by number
};

using Cluster = std::vector<Place>;
using Set = std::vector<size_t>;  // ranks, in order

// Of places in the order of functions and ends.
std::vector<Cluster> Clusters(const std::vector<Place>& places, uint64_t apart_ns) {
  std::vector<Cluster> clusters;
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
Set SetOf(const Cluster& cluster, uint64_t apart_ns) {
  if (cluster.size() < 2) return {};
  if (cluster.back().end_ns - cluster.front().end_ns > 2 * apart_ns) return {};
  Set set;
  for (const Place& place : cluster) set.push_back(place.rank);
  std::sort(set.begin(), set.end());
  return std::adjacent_find(set.begin(), set.end()) == set.end() ? set : Set{};
}

// When kernels of each rank were seen before and after without a gap between: whose is
// missing then had none.
class AllSeen {
 public:
  AllSeen(const std::vector<std::vector<Ended>>& ranks,
          const std::vector<std::vector<Traced>>& traced, uint64_t apart_ns) {
    std::map<uint64_t, int64_t> changes;  // of the number of ranks that are seen
    for (size_t r = 0; r < ranks.size(); ++r) {
      const std::vector<Traced> always = {{0, UINT64_MAX}};
      for (const Traced& seen :
           SeenOf(ranks[r], traced.empty() ? always : traced[r], 2 * apart_ns)) {
        ++changes[seen.start_ns];
        --changes[seen.end_ns];
      }
    }
    int64_t count = 0;
    for (const auto& [time_ns, change] : changes) {
      const bool before = count == static_cast<int64_t>(ranks.size());
      count += change;
      const bool after = count == static_cast<int64_t>(ranks.size());
      if (after && !before) all_.push_back({time_ns, time_ns});
      if (before && !after) all_.back().end_ns = time_ns;
    }
  }

  bool At(const Cluster& cluster) const {
    const auto after = std::upper_bound(
        all_.begin(), all_.end(), cluster.front().end_ns,
        [](uint64_t ns, const Traced& one) { return ns < one.start_ns; });
    return after != all_.begin() && cluster.back().end_ns < std::prev(after)->end_ns;
  }

 private:
  static std::vector<Traced> SeenOf(const std::vector<Ended>& kernels,
                                    const std::vector<Traced>& traced,
                                    uint64_t around_ns) {
    std::vector<uint64_t> ends;
    for (const Ended& kernel : kernels) ends.push_back(kernel.end_ns);
    std::sort(ends.begin(), ends.end());
    std::vector<Traced> seen;
    auto first = ends.begin();
    for (const Traced& one : traced) {
      first = std::lower_bound(first, ends.end(), one.start_ns);
      const auto past = std::upper_bound(first, ends.end(), one.end_ns);
      if (first == past) continue;
      const uint64_t start_ns = *first - std::min(*first, around_ns);
      const uint64_t last_ns = *std::prev(past);
      const uint64_t end_ns = last_ns + std::min(UINT64_MAX - last_ns, around_ns + 1);
      if (!seen.empty() && start_ns <= seen.back().end_ns) {
        seen.back().end_ns = end_ns;
      } else {
        seen.push_back({start_ns, end_ns});
      }
      first = past;
    }
    return seen;
  }

  std::vector<Traced> all_;
};

// Whose kernels end together on each stream.
class Communicators {
 public:
  Communicators(const std::vector<Cluster>& clusters, const AllSeen& all_seen,
                size_t streams, uint64_t apart_ns)
      : chosen_(streams) {
    std::vector<std::map<uint32_t, uint64_t>> seen(streams);  // how often, by set
    std::vector<uint64_t> kernels(streams);
    std::vector<const Cluster*> whole;
    for (const Cluster& cluster : clusters) {
      if (!all_seen.At(cluster)) continue;
      const Set set = SetOf(cluster, apart_ns);
      const uint32_t number = set.empty() ? 0 : NumberOf(set);
      if (number != 0) whole.push_back(&cluster);
      for (const Place& place : cluster) {
        ++kernels[place.stream];
        if (number != 0) ++seen[place.stream][number];
      }
    }
    std::vector<std::vector<uint32_t>> often(streams);  // smallest first
    for (size_t i = 0; i < streams; ++i) {
      for (const auto& [set, times] : seen[i]) {
        if (static_cast<double>(times) >= kOftenShare * static_cast<double>(kernels[i]))
          often[i].push_back(set);
      }
      std::stable_sort(
          often[i].begin(), often[i].end(),
          [this](uint32_t a, uint32_t b) { return sets_[a].size() < sets_[b].size(); });
    }
    Choose(often, whole);
  }

  // The number of a set; 0: nobody knows.
  uint32_t Of(const Place& place) const { return chosen_[place.stream]; }
  const Set& At(uint32_t number) const { return sets_[number]; }

 private:
  uint32_t NumberOf(const Set& set) {
    const auto [it, fresh] =
        numbers_.try_emplace(set, static_cast<uint32_t>(sets_.size()));
    if (fresh) sets_.push_back(set);
    return it->second;
  }

  // The smallest that nobody contradicts. Where kernels of one rank were lost, the
  // others seem to be alone; but with them there are kernels of that rank, on a stream
  // where it is always with them.
  void Choose(const std::vector<std::vector<uint32_t>>& often,
              const std::vector<const Cluster*>& whole) {
    std::vector<bool> wrong(sets_.size());
    for (int round = 0; round < kMostRounds; ++round) {
      for (size_t i = 0; i < often.size(); ++i) {
        const auto first = std::find_if(often[i].begin(), often[i].end(),
                                        [&](uint32_t set) { return !wrong[set]; });
        chosen_[i] = first == often[i].end() ? 0 : *first;
      }
      std::vector<uint64_t> times(sets_.size()), contradicted(sets_.size());
      for (const Cluster* cluster : whole) Contradict(*cluster, times, contradicted);
      bool all_agree = true;
      for (size_t set = 1; set < sets_.size(); ++set) {
        if (static_cast<double>(contradicted[set]) <=
            kContradictedShare * static_cast<double>(times[set])) {
          continue;
        }
        wrong[set] = true;
        all_agree = false;
      }
      if (all_agree) return;
    }
    std::fill(chosen_.begin(), chosen_.end(), 0);
  }

  void Contradict(const Cluster& cluster, std::vector<uint64_t>& times,
                  std::vector<uint64_t>& contradicted) const {
    std::map<uint32_t, size_t> parts;    // how many places, by set
    std::map<size_t, uint32_t> by_rank;  // the set
    for (const Place& place : cluster) {
      ++parts[Of(place)];
      by_rank[place.rank] = Of(place);
    }
    std::set<uint32_t> wrong;
    for (const auto& [set, places] : parts) {
      ++times[set];
      if (set == 0 || places == sets_[set].size()) continue;
      for (const size_t rank : sets_[set]) {
        const auto other = by_rank.find(rank);
        if (other == by_rank.end() || other->second == set || other->second == 0)
          continue;
        if (sets_[other->second].size() <= sets_[set].size())
          wrong.insert(other->second);
        if (sets_[other->second].size() >= sets_[set].size()) wrong.insert(set);
      }
    }
    for (const uint32_t set : wrong) ++contradicted[set];
  }

  std::map<Set, uint32_t> numbers_;
  std::vector<Set> sets_{1};  // by number
  std::vector<uint32_t> chosen_;
};

// The kernels of one communicator in a cluster.
struct Part {
  Cluster places;
  uint64_t came_ns = 0;  // when the last one did
  bool whole = false;

  uint64_t TookNs() const {  // from then on
    return places.back().end_ns - std::min(came_ns, places.back().end_ns);
  }
};

// Those that are one collective, as far as the cluster shows. A part that took longer
// than another one, from when all its ranks had come until it ended with that one, has
// waited for it: they are one collective of a larger communicator on the same stream.
std::vector<Cluster> CollectivesOf(const Cluster& cluster, const Communicators& known,
                                   uint64_t apart_ns) {
  std::map<uint32_t, Part> parts;
  for (const Place& place : cluster) {
    const uint32_t set = known.Of(place);
    if (set == 0) continue;
    Part& part = parts[set];
    part.places.push_back(place);
    part.came_ns = std::max(part.came_ns, place.start_ns);
  }
  uint64_t least_ns = UINT64_MAX;
  std::set<size_t> doubtful;  // ranks
  for (auto& [set, part] : parts) {
    part.whole = SetOf(part.places, apart_ns) == known.At(set);
    if (part.whole) {
      least_ns = std::min(least_ns, part.TookNs());
    } else {
      doubtful.insert(known.At(set).begin(), known.At(set).end());
    }
  }
  std::vector<Cluster> collectives;
  for (auto& [set, part] : parts) {
    if (!part.whole || part.TookNs() - least_ns > 2 * apart_ns) continue;
    if (std::any_of(part.places.begin(), part.places.end(), [&](const Place& place) {
          return doubtful.count(place.rank) > 0;
        })) {
      continue;
    }
    collectives.push_back(std::move(part.places));
  }
  return collectives;
}

}  // namespace

Together ByEnds(const std::vector<std::vector<Ended>>& ranks, uint64_t apart_ns,
                const std::vector<std::vector<Traced>>& traced) {
  Together found;
  std::vector<Place> places;
  std::map<std::pair<size_t, uint32_t>, uint32_t> streams;
  for (size_t r = 0; r < ranks.size(); ++r) {
    found.ranks.emplace_back(ranks[r].size());
    for (size_t i = 0; i < ranks[r].size(); ++i) {
      const Ended& kernel = ranks[r][i];
      const auto next = static_cast<uint32_t>(streams.size());
      const uint32_t stream =
          streams.try_emplace({r, kernel.stream}, next).first->second;
      places.push_back({kernel.function, kernel.start_ns, kernel.end_ns, r, i, stream});
    }
  }
  std::sort(places.begin(), places.end(), [](const Place& a, const Place& b) {
    return std::tie(a.function, a.end_ns, a.rank) <
           std::tie(b.function, b.end_ns, b.rank);
  });
  const std::vector<Cluster> clusters = Clusters(places, apart_ns);
  const Communicators known(clusters, AllSeen(ranks, traced, apart_ns), streams.size(),
                            apart_ns);
  uint64_t number = 0;
  for (const Cluster& cluster : clusters) {
    for (const Cluster& one : CollectivesOf(cluster, known, apart_ns)) {
      const Identity identity{++number, static_cast<uint32_t>(one.size()),
                              known.Of(one.front())};
      for (const Place& place : one) found.ranks[place.rank][place.index] = identity;
      found.spread_ns =
          std::max(found.spread_ns, one.back().end_ns - one.front().end_ns);
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
