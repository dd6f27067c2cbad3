#include "daemon/ranks/chains.h"

namespace lull::ranks {

Chains::Chains(const std::vector<Rank>& ranks, const Matched& matched)
    : ranks_(ranks), matched_(matched) {
  for (const std::vector<Burst>& bursts : matched.bursts) {
    came_to_.emplace_back(bursts.size(), kUnknown);
  }
  for (size_t i = 0; i < matched.collectives.size(); ++i) {
    arrivals_.push_back(ArrivalOf(matched, matched.collectives[i]));
    for (const Member& member : matched.collectives[i]) {
      came_to_[member.rank][member.burst] = i;
    }
  }
  for (size_t i = 0; i < matched.collectives.size(); ++i) {
    left_before_.push_back(LeftBefore(i));
  }
}

// If it did wait there until all had come: the root of a broadcast need not.
size_t Chains::LeftBefore(const Member& member) const {
  const Burst& burst = matched_.At(member);
  if (burst.collective == 0 || !burst.since_ns) return kUnknown;
  const size_t before = came_to_[member.rank][member.burst - 1];
  if (before == kUnknown) return kUnknown;
  const Arrival& arrival = arrivals_[before];
  const uint64_t error_ns =
      member.rank == arrival.last.rank
          ? 0
          : ErrorBetween(ranks_[member.rank], ranks_[arrival.last.rank],
                         arrival.came_ns);
  return *burst.since_ns + error_ns < arrival.came_ns ? kUnknown : before;
}

// Where several may have come last, they must all have left the same one. By the errors
// of times two ranks may each have left what the other one came to then: only what came
// earlier is behind, so that a way has an end.
size_t Chains::LeftBefore(size_t collective) const {
  const Arrival& arrival = arrivals_[collective];
  const size_t before = LeftBefore(arrival.last);
  if (before == kUnknown || before >= collective) return kUnknown;
  for (const Member& member : matched_.collectives[collective]) {
    if (member.rank == arrival.last.rank) continue;
    const uint64_t error_ns =
        ErrorBetween(ranks_[member.rank], ranks_[arrival.last.rank], arrival.came_ns);
    const uint64_t earlier_ns = arrival.came_ns - matched_.At(member).start_ns;
    if (earlier_ns <= error_ns && LeftBefore(member) != before) return kUnknown;
  }
  return before;
}

bool Chains::MayComeFrom(const Member& member, size_t earlier) const {
  size_t at = LeftBefore(member);
  while (at != kUnknown && arrivals_[at].came_ns > arrivals_[earlier].came_ns) {
    at = left_before_[at];
  }
  return at == kUnknown || at == earlier;
}

bool Chains::HeldUpOnlyTheLast(size_t collective, size_t earlier) const {
  const Arrival& arrival = arrivals_[collective];
  for (const Member& member : matched_.collectives[collective]) {
    if (member.rank != arrival.last.rank &&
        matched_.At(member).start_ns == arrival.second_ns &&
        MayComeFrom(member, earlier)) {
      return false;
    }
  }
  return true;
}

std::vector<size_t> Chains::Behind(size_t collective) const {
  const Burst& late = matched_.At(arrivals_[collective].last);
  std::vector<size_t> behind;
  for (size_t at = left_before_[collective]; at != kUnknown; at = left_before_[at]) {
    if (matched_.At(arrivals_[at].last).group == late.group ||
        arrivals_[at].came_ns <= late.group_since_ns) {
      break;
    }
    behind.push_back(at);
  }
  return behind;
}

}  // namespace lull::ranks
