#include "daemon/ranks/collectives.h"

#include <algorithm>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/ranks/identified.h"

namespace lull::ranks {
namespace {

// Between two waits DDP copies a bucket of gradients, 25 MB by default.
constexpr uint64_t kLongestCopyNs = 10'000'000;

bool GoesOn(const Rank& rank, const Burst& burst, const Stretch& wait, uint64_t step) {
  if (rank.steps.empty() || step != burst.step || wait.what != burst.line ||
      wait.start_ns > burst.end_ns + kLongestCopyNs) {
    return false;
  }
  const auto spent = std::lower_bound(
      rank.spent.begin(), rank.spent.end(), burst.end_ns,
      [](const Stretch& one, uint64_t time_ns) { return one.start_ns < time_ns; });
  return spent == rank.spent.end() || spent->start_ns >= wait.start_ns;
}

// Waits that may have been for other ranks, without what they enclose.
std::vector<Stretch> UnclearOf(const Rank& rank) {
  std::vector<Stretch> unclear;
  for (const Stretch& one : rank.spent) {
    if (one.what != 0) continue;
    if (unclear.empty() || unclear.back().end_ns < one.end_ns) unclear.push_back(one);
  }
  return unclear;
}

}  // namespace

uint64_t StepAt(const Rank& rank, uint64_t time_ns) {
  return static_cast<uint64_t>(
      std::upper_bound(rank.steps.begin(), rank.steps.end(), time_ns) -
      rank.steps.begin());
}

std::vector<Burst> BurstsOf(const Rank& rank) {
  std::vector<Burst> bursts;
  for (size_t i = 0; i < rank.waits.size(); ++i) {
    const Stretch& wait = rank.waits[i];
    if (wait.collective != 0) continue;
    const uint64_t step = StepAt(rank, wait.start_ns);
    if (!bursts.empty() && bursts.back().past == i &&
        GoesOn(rank, bursts.back(), wait, step)) {
      bursts.back().end_ns = wait.end_ns;
      bursts.back().past = i + 1;
    } else {
      Burst& burst = bursts.emplace_back();
      burst.start_ns = wait.start_ns;
      burst.end_ns = wait.end_ns;
      burst.line = wait.what;
      burst.first = i;
      burst.past = i + 1;
      burst.step = step;
    }
  }
  return bursts;
}

uint64_t Waited(const Rank& rank, const Burst& burst, uint64_t begin_ns,
                uint64_t end_ns) {
  uint64_t waited = 0;
  for (size_t i = burst.first; i < burst.past; ++i) {
    const uint64_t from = std::max(begin_ns, rank.waits[i].start_ns);
    const uint64_t to = std::min(end_ns, rank.waits[i].end_ns);
    if (from < to) waited += to - from;
  }
  return waited;
}

namespace {

class Matching {
 public:
  explicit Matching(const std::vector<Rank>& ranks)
      : ranks_(ranks), next_(ranks.size(), 0) {
    found_.bursts.resize(ranks.size());
    for (const Rank& rank : ranks) {
      seen_.push_back(BurstsOf(rank));
      unclear_.push_back(UnclearOf(rank));
    }
  }

  Matched Find() {
    while (!Over()) Step();
    for (size_t r = 0; r < ranks_.size(); ++r) {
      while (next_[r] < seen_[r].size()) Take(r);
    }
    if (transfers_.empty()) found_.collectives.clear();
    found_.transfer_ns = LowerMedian(std::move(transfers_));
    // The last one had come when the transfer began.
    for (const auto& [r, i] : unseen_) {
      Burst& burst = found_.bursts[r][i];
      const uint64_t free_ns = i == 0 ? 0 : found_.bursts[r][i - 1].end_ns;
      const uint64_t came_ns =
          burst.start_ns - std::min(burst.start_ns, found_.transfer_ns);
      burst.start_ns = std::max(free_ns, came_ns);
    }
    for (std::vector<Burst>& bursts : found_.bursts) {
      for (size_t i = 1; i < bursts.size(); ++i) {
        bursts[i].since_ns = bursts[i - 1].end_ns;
      }
    }
    return std::move(found_);
  }

 private:
  bool Over() const {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (next_[r] == seen_[r].size()) return true;
    }
    return ranks_.empty();
  }

  const Burst& Next(size_t rank) const { return seen_[rank][next_[rank]]; }

  size_t Take(size_t rank) {
    found_.bursts[rank].push_back(Next(rank));
    ++next_[rank];
    return found_.bursts[rank].size() - 1;
  }

  // The burst that ends first is in a collective with all that have begun by then.
  void Step() {
    size_t first = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (Next(r).end_ns < Next(first).end_ns) first = r;
    }
    const uint64_t end_ns = Next(first).end_ns;
    uint64_t came_ns = 0;
    std::vector<size_t> away;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      if (Next(r).start_ns > end_ns) {
        away.push_back(r);
      } else {
        came_ns = std::max(came_ns, Next(r).start_ns);
      }
    }
    if (away.size() > 1 || (away.size() == 1 && !MayCome(away[0], end_ns))) {
      Take(first);
      return;
    }
    if (away.empty()) transfers_.push_back(end_ns - came_ns);
    Collective collective;
    const uint32_t line = Next(first).line;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const bool seen = away.empty() || r != away[0];
      collective.push_back({r, seen ? Take(r) : AddUnseen(r, came_ns, end_ns, line)});
    }
    found_.collectives.push_back(std::move(collective));
  }

  // Of the rank that all others waited for from `came_ns` until `end_ns`: it cannot
  // have ended its step before. Its own wait may begin later.
  size_t AddUnseen(size_t rank, uint64_t came_ns, uint64_t end_ns, uint32_t line) {
    std::vector<Burst>& bursts = found_.bursts[rank];
    const uint64_t step = StepAt(ranks_[rank], came_ns);
    if (!ranks_[rank].steps.empty() && Next(rank).step == step &&
        Next(rank).line == line) {
      Take(rank);
      bursts.back().start_ns = end_ns;
      bursts.back().unseen = true;
      bursts.back().over_ns = end_ns;
    } else {
      Burst& burst = bursts.emplace_back();
      burst.start_ns = burst.end_ns = burst.over_ns = end_ns;
      burst.line = line;
      burst.step = step;
      burst.unseen = true;
    }
    unseen_.emplace_back(rank, bursts.size() - 1);
    return bursts.size() - 1;
  }

  // Not a rank that was in a wait of its own all the time, or that has not begun, or of
  // which a wait may be the one that is missing.
  bool MayCome(size_t rank, uint64_t end_ns) const {
    const std::vector<Burst>& before = found_.bursts[rank];
    if (before.empty() || before.back().end_ns >= end_ns) return false;
    const auto unclear = std::upper_bound(
        unclear_[rank].begin(), unclear_[rank].end(), before.back().end_ns,
        [](uint64_t time_ns, const Stretch& one) { return time_ns < one.end_ns; });
    return unclear == unclear_[rank].end() || unclear->start_ns >= end_ns;
  }

  const std::vector<Rank>& ranks_;
  std::vector<std::vector<Burst>> seen_;
  std::vector<std::vector<Stretch>> unclear_;
  std::vector<size_t> next_;
  std::vector<uint64_t> transfers_;
  std::vector<std::pair<size_t, size_t>> unseen_;
  Matched found_;
};

}  // namespace

Arrival ArrivalOf(const Matched& matched, const Collective& collective) {
  Arrival arrival;
  for (const Member& member : collective) {
    const uint64_t start_ns = matched.At(member).start_ns;
    if (start_ns >= arrival.came_ns) {
      arrival.second_ns = arrival.came_ns;
      arrival.came_ns = start_ns;
      arrival.last = member;
    } else {
      arrival.second_ns = std::max(arrival.second_ns, start_ns);
    }
  }
  return arrival;
}

Matched Match(const std::vector<Rank>& ranks) {
  Matched matched = Matching(ranks).Find();
  AddIdentified(ranks, &matched);
  return matched;
}

}  // namespace lull::ranks
