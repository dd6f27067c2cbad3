#include "daemon/ranks/ranks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/ranks/chains.h"
#include "daemon/ranks/collectives.h"
#include "daemon/ranks/excess.h"
#include "daemon/ranks/judged.h"

namespace lull::ranks {
namespace {

// A rank is late from this part of a step on.
constexpr double kLateShare = 0.02;
// What explains so much of a delay explains it: clocks are read before and after calls.
constexpr double kWholeShare = 0.9;
// A cause that was recorded fewer times counts from this part of the time on.
constexpr uint64_t kOften = 3;
constexpr double kMuchShare = 0.01;
// A line of code is named if so many looks, and half of them, were at it.
constexpr uint64_t kEnoughLooks = 3;

class Judge {
 public:
  explicit Judge(const std::vector<Rank>& ranks)
      : ranks_(ranks), matched_(Match(ranks)) {
    for (size_t r = 0; r < ranks.size(); ++r) {
      habits_.emplace_back(ranks[r], bursts_[r]);
    }
    Habits::Compare(habits_);
    story_.ranks.resize(ranks.size());
  }

  Story Tell() {
    story_.collectives = matched_.collectives.size();
    for (const Collective& one : matched_.collectives) Consider(one);
    CountUnmatched();
    least_late_ns_ = static_cast<uint64_t>(kLateShare * static_cast<double>(StepNs()));
    PassOn();
    TellUnusual();
    TellUsual();
    Finish();
    return std::move(story_);
  }

 private:
  // Waits until all had come, and by how much the last one was late.
  void Consider(const Collective& one) {
    const Arrival arrival = ArrivalOf(matched_, one);
    const size_t last = arrival.last.rank;
    Judged judged;
    judged.members = &one;
    judged.group = matched_.At(arrival.last).group;
    judged.last = judged.charged = last;
    judged.came_ns = arrival.came_ns;
    judged.second_ns = arrival.second_ns;
    judged.late_ns = arrival.came_ns - arrival.second_ns;
    for (const Member& member : one) {
      const Burst& burst = matched_.At(member);
      judged.unseen = judged.unseen || burst.unseen;
      const uint64_t waited =
          Waited(ranks_[member.rank], burst, burst.start_ns, judged.came_ns);
      story_.ranks[member.rank].waited_ns += waited;
      waited_ns_ += waited;
      if (member.rank == last) continue;
      const uint64_t for_last = WaitedForLast(judged, member);
      judged.late_ns = std::min(judged.late_ns, for_last);
      judged.cost_ns += for_last;
    }
    judged.step =
        ranks_[last].steps.empty() ? judged_.size() : matched_.At(arrival.last).step;
    judged.before = habits_[last].Find(arrival.last.burst);
    judged.sure = judged.before != nullptr && CameLastForSure(judged);
    if (judged.sure) {
      judged.excess = habits_[last].MostUnusual(*judged.before, judged.late_ns,
                                                BeforeOfOthers(judged));
    }
    if (judged.excess) TakeWhatItExplains(&judged);
    judged_.push_back(judged);
  }

  uint64_t WaitedForLast(const Judged& judged, const Member& member) const {
    return Waited(ranks_[member.rank], matched_.At(member), judged.second_ns,
                  judged.came_ns);
  }

  // Collectives that are alike may stand in different places of a step; what all do
  // before one of them is compared where it is known which waits are of that one.
  std::vector<const Before*> BeforeOfOthers(const Judged& judged) const {
    std::vector<const Before*> others;
    for (const Member& member : *judged.members) {
      if (member.rank == judged.last || matched_.At(member).collective == 0) continue;
      const Before* before = habits_[member.rank].Find(member.burst);
      if (before != nullptr) others.push_back(before);
    }
    return others;
  }

  // Whatever the errors of clocks are. Who may as well have come before another is
  // charged with nothing.
  bool CameLastForSure(const Judged& judged) const {
    for (const Member& member : *judged.members) {
      if (member.rank == judged.last) continue;
      const uint64_t error_ns =
          ErrorBetween(ranks_[judged.last], ranks_[member.rank], judged.came_ns);
      if (error_ns > 0 && judged.came_ns - matched_.At(member).start_ns <= error_ns) {
        return false;
      }
    }
    return true;
  }

  // The rest of what a rank was late by has causes of its own: it stays unexplained.
  static void TakeWhatItExplains(Judged* judged) {
    const auto share = static_cast<double>(judged->excess->ns) /
                       static_cast<double>(std::max<uint64_t>(judged->late_ns, 1));
    if (share >= kWholeShare) return;
    judged->late_ns = judged->excess->ns;
    judged->cost_ns =
        static_cast<uint64_t>(share * static_cast<double>(judged->cost_ns));
  }

  // What nothing unusual of its own explains may be what others were late by in
  // communicators that the rank came from: whoever explains most of it there is
  // charged.
  void PassOn() {
    const Chains chains(ranks_, matched_);
    for (size_t i = 0; i < judged_.size(); ++i) {
      Judged& judged = judged_[i];
      if (!judged.sure || judged.excess || !IsLate(judged)) continue;
      using Key = std::tuple<size_t, bool, uint32_t, bool>;  // rank and cause
      std::map<Key, std::pair<uint64_t, const Judged*>> explained;
      for (const size_t before : chains.Behind(i)) {
        const Judged& other = judged_[before];
        if (!other.excess || other.passed_on) continue;
        const Excess& excess = *other.excess;
        auto& [ns, most] =
            explained[{other.last, excess.recorded, excess.what, excess.usual}];
        ns += other.late_ns;
        if (most == nullptr || most->late_ns < other.late_ns) most = &other;
      }
      const auto culprit = std::max_element(
          explained.begin(), explained.end(),
          [](const auto& a, const auto& b) { return a.second.first < b.second.first; });
      if (culprit == explained.end()) continue;
      const auto& [ns, most] = culprit->second;
      const auto most_of_it = static_cast<size_t>(most - judged_.data());
      if (ns >= judged.late_ns - judged.late_ns / 2 &&
          chains.HeldUpOnlyTheLast(i, most_of_it)) {
        Charge(*most, ns, &judged);
      }
    }
  }

  // What the charged rank waited itself is no cost to others.
  void Charge(const Judged& culprit, uint64_t ns, Judged* judged) const {
    judged->passed_on = true;
    judged->charged = culprit.last;
    judged->step = culprit.step;
    judged->excess = culprit.excess;
    judged->excess->ns = ns;
    for (const Member& member : *judged->members) {
      if (member.rank != culprit.last || member.rank == judged->last) continue;
      judged->cost_ns -= WaitedForLast(*judged, member);
    }
    TakeWhatItExplains(judged);
  }

  void CountUnmatched() {
    story_.unmatched_ns = matched_.left_alone_ns;
    std::vector<std::vector<bool>> matched;
    for (const std::vector<Burst>& bursts : matched_.bursts) {
      matched.emplace_back(bursts.size());
    }
    for (const Collective& one : matched_.collectives) {
      for (const Member& member : one) matched[member.rank][member.burst] = true;
    }
    for (size_t r = 0; r < ranks_.size(); ++r) {
      for (size_t i = 0; i < matched[r].size(); ++i) {
        if (matched[r][i]) continue;
        const Burst& burst = bursts_[r][i];
        story_.unmatched_ns += Waited(ranks_[r], burst, burst.start_ns, burst.end_ns);
      }
    }
  }

  // The median distance of steps, or of collectives of a communicator where there are
  // none.
  uint64_t StepNs() const {
    std::vector<uint64_t> distances;
    const std::vector<uint64_t>& steps = ranks_.front().steps;
    for (size_t i = 1; i < steps.size(); ++i) {
      distances.push_back(steps[i] - steps[i - 1]);
    }
    std::map<uint32_t, uint64_t> before;  // by group
    for (size_t i = 0; steps.empty() && i < judged_.size(); ++i) {
      const auto [it, fresh] = before.try_emplace(judged_[i].group, 0);
      if (!fresh) distances.push_back(judged_[i].came_ns - it->second);
      it->second = judged_[i].came_ns;
    }
    return LowerMedian(std::move(distances));
  }

  bool IsLate(const Judged& judged) const {
    return judged.late_ns > 0 && judged.late_ns >= least_late_ns_;
  }

  void TellUnusual() {
    std::map<std::pair<size_t, uint32_t>, std::vector<const Judged*>> by_cause;
    for (const Judged& judged : judged_) {
      if (!judged.excess || judged.excess->usual) {
        if (!judged.unseen) by_chance_.push_back(&judged);
      } else if (IsLate(judged)) {
        by_cause[{judged.charged, judged.excess->what}].push_back(&judged);
      }
    }
    const uint64_t span =
        judged_.empty() ? 0 : judged_.back().came_ns - judged_.front().came_ns;
    for (const auto& [key, late] : by_cause) {
      Cause cause = SumOf(late);
      cause.recorded = true;
      cause.what = key.second;
      if (cause.count < kOften &&
          static_cast<double>(cause.late_ns) < kMuchShare * static_cast<double>(span)) {
        continue;
      }
      Add(key.first, cause, late);
    }
  }

  // Chance alone makes any rank the last one, and by any time: only a rank that a cause
  // makes cost much more than its share has something of its own.
  void TellUsual() {
    std::map<std::pair<bool, uint32_t>, std::vector<const Judged*>> by_cause;
    for (const Judged* judged : by_chance_) {
      if (!judged->excess) continue;
      by_cause[{judged->excess->recorded, judged->excess->what}].push_back(judged);
    }
    for (const auto& [key, all] : by_cause) {
      const std::vector<bool> more = CostMore(all, ranks_.size());
      for (size_t r = 0; r < ranks_.size(); ++r) {
        if (!more[r]) continue;
        std::vector<const Judged*> late = all;
        std::erase_if(late, [&](const Judged* judged) {
          return judged->charged != r || !IsLate(*judged);
        });
        Cause cause = SumOf(late);
        if (cause.count < kOften) continue;
        cause.recorded = key.first;
        cause.what = key.first ? key.second : SeenMost(r, late);
        Add(r, cause, late);
      }
    }
  }

  uint32_t SeenMost(size_t rank, const std::vector<const Judged*>& late) const {
    std::map<uint32_t, uint64_t> seen;
    uint64_t all = 0;
    for (const Judged* judged : late) {
      if (judged->passed_on) continue;  // it was looked at where it was late itself
      habits_[rank].ForEachLook(*judged->before, [&](uint32_t what) {
        ++seen[what];
        ++all;
      });
    }
    for (const auto& [what, looks] : seen) {
      if (looks >= kEnoughLooks && 2 * looks > all) return what;
    }
    return 0;
  }

  void Add(size_t rank, const Cause& cause, const std::vector<const Judged*>& late) {
    story_.ranks[rank].causes.push_back(cause);
    for (const Judged* judged : late) {
      late_steps_.insert({rank, judged->step});
      story_.late.push_back({rank, judged->came_ns, judged->cost_ns});
    }
    told_ns_ += cause.cost_ns;
  }

  void Finish() {
    for (const Rank& rank : ranks_) {
      story_.steps = std::max<uint64_t>(story_.steps, rank.steps.size());
    }
    story_.no_steps = story_.steps == 0;
    if (story_.no_steps) story_.steps = story_.collectives;
    story_.unexplained_ns = waited_ns_ - told_ns_;
    for (const auto& [rank, step] : late_steps_) ++story_.ranks[rank].late_steps;
    for (RankStory& rank : story_.ranks) {
      std::stable_sort(
          rank.causes.begin(), rank.causes.end(),
          [](const Cause& a, const Cause& b) { return a.cost_ns > b.cost_ns; });
    }
  }

  const std::vector<Rank>& ranks_;
  const Matched matched_;
  const std::vector<std::vector<Burst>>& bursts_ = matched_.bursts;
  std::vector<Habits> habits_;
  std::vector<Judged> judged_;
  std::vector<const Judged*> by_chance_;
  std::set<std::pair<size_t, uint64_t>> late_steps_;
  uint64_t least_late_ns_ = 0, waited_ns_ = 0, told_ns_ = 0;
  Story story_;
};

}  // namespace

uint64_t ErrorBetween(const Rank& a, const Rank& b, uint64_t time_ns) {
  const uint64_t times_ns = a.times_error_ns + b.times_error_ns;
  if (a.clock == b.clock) return times_ns;
  return times_ns + (a.clock != nullptr ? a.clock->ErrorAt(time_ns) : 0) +
         (b.clock != nullptr ? b.clock->ErrorAt(time_ns) : 0);
}

Story WhoWaitedForWhom(const std::vector<Rank>& ranks) { return Judge(ranks).Tell(); }

}  // namespace lull::ranks
