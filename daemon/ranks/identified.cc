#include "daemon/ranks/identified.h"

#include <algorithm>
#include <map>
#include <utility>

namespace lull::ranks {
namespace {

// A wait, and the number of ranks that take part in its collective.
struct Claim {
  uint64_t collective = 0;
  uint32_t members = 0;
  Member member;
};

// When the rank may have waited for others and nobody knows: in the order of starts,
// and of ends. `more`: waits that were left alone.
std::vector<Stretch> UnknownOf(const Rank& rank, std::vector<Stretch> more) {
  for (const Stretch& one : rank.spent) {
    if (one.what == 0) more.push_back(one);
  }
  for (const Stretch& wait : rank.waits) {
    if (wait.collective == 0) more.push_back(wait);
  }
  std::stable_sort(more.begin(), more.end(), [](const Stretch& a, const Stretch& b) {
    return a.start_ns < b.start_ns;
  });
  std::vector<Stretch> outer;
  for (const Stretch& one : more) {
    if (outer.empty() || outer.back().end_ns < one.end_ns) outer.push_back(one);
  }
  return outer;
}

bool IsKnown(const std::vector<Stretch>& unknown, uint64_t from_ns, uint64_t to_ns) {
  const auto one = std::upper_bound(
      unknown.begin(), unknown.end(), from_ns,
      [](uint64_t time_ns, const Stretch& other) { return time_ns < other.end_ns; });
  return one == unknown.end() || one->start_ns >= to_ns;
}

// The time of waits that were left alone.
uint64_t AddBursts(const Rank& rank, std::vector<Burst>* bursts) {
  const size_t first = bursts->size();
  std::vector<Stretch> overlapping;
  uint64_t free_ns = 0, left_alone_ns = 0;
  for (size_t i = 0; i < rank.waits.size(); ++i) {
    const Stretch& wait = rank.waits[i];
    if (wait.collective == 0) continue;
    if (wait.start_ns < free_ns || wait.end_ns < wait.start_ns) {
      overlapping.push_back(wait);
      left_alone_ns += wait.end_ns - std::min(wait.start_ns, wait.end_ns);
      continue;
    }
    free_ns = wait.end_ns;
    Burst& burst = bursts->emplace_back();
    burst.start_ns = wait.start_ns;
    burst.end_ns = wait.end_ns;
    burst.line = wait.what;
    burst.first = i;
    burst.past = i + 1;
    burst.step = StepAt(rank, wait.start_ns);
    burst.collective = wait.collective;
    burst.group = wait.group;
  }
  if (first == bursts->size()) return left_alone_ns;
  const std::vector<Stretch> unknown = UnknownOf(rank, std::move(overlapping));
  std::map<uint32_t, uint64_t> left_ns;  // by group: when its last collective was over
  for (size_t i = first; i < bursts->size(); ++i) {
    Burst& burst = (*bursts)[i];
    const auto [before, fresh] = left_ns.try_emplace(burst.group, 0);
    if (!fresh && IsKnown(unknown, before->second, burst.start_ns)) {
      burst.since_ns = (*bursts)[i - 1].end_ns;
      burst.spent_since_ns = (*bursts)[i - 1].start_ns;
      burst.group_since_ns = before->second;
    }
    before->second = burst.end_ns;
  }
  return left_alone_ns;
}

// Of one collective, in the order of ranks.
bool IsWhole(const std::vector<Claim>& claims, size_t first, size_t past) {
  const uint32_t members = claims[first].members;
  if (members < 2 || past - first != members) return false;
  for (size_t i = first + 1; i < past; ++i) {
    if (claims[i].members != members ||
        claims[i].member.rank == claims[i - 1].member.rank) {
      return false;
    }
  }
  return true;
}

void SortByTime(Matched* matched) {
  std::vector<std::pair<uint64_t, size_t>> came;  // and which
  for (size_t i = 0; i < matched->collectives.size(); ++i) {
    came.emplace_back(ArrivalOf(*matched, matched->collectives[i]).came_ns, i);
  }
  std::sort(came.begin(), came.end());
  std::vector<Collective> sorted;
  sorted.reserve(came.size());
  for (const auto& [time_ns, i] : came) {
    sorted.push_back(std::move(matched->collectives[i]));
  }
  matched->collectives = std::move(sorted);
}

}  // namespace

void AddIdentified(const std::vector<Rank>& ranks, Matched* matched) {
  std::vector<Claim> claims;
  for (size_t r = 0; r < ranks.size(); ++r) {
    std::vector<Burst>& bursts = matched->bursts[r];
    size_t i = bursts.size();
    matched->left_alone_ns += AddBursts(ranks[r], &bursts);
    for (; i < bursts.size(); ++i) {
      claims.push_back(
          {bursts[i].collective, ranks[r].waits[bursts[i].first].members, {r, i}});
    }
  }
  if (claims.empty()) return;
  std::stable_sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return a.collective < b.collective;
  });
  for (size_t first = 0, past = 0; first < claims.size(); first = past) {
    while (past < claims.size() &&
           claims[past].collective == claims[first].collective) {
      ++past;
    }
    if (!IsWhole(claims, first, past)) continue;
    Collective& collective = matched->collectives.emplace_back();
    for (size_t i = first; i < past; ++i) collective.push_back(claims[i].member);
  }
  SortByTime(matched);
}

}  // namespace lull::ranks
