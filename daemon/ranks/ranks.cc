#include "daemon/ranks/ranks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "daemon/base/median.h"
#include "daemon/ranks/collectives.h"
#include "daemon/ranks/excess.h"

namespace lull::ranks {
namespace {

// A rank is late from this part of a step on.
constexpr double kLateShare = 0.02;
// What explains so much of a delay explains it: clocks are read before and after calls.
constexpr double kWholeShare = 0.9;
// A cause that was recorded fewer times counts from this part of the time on.
constexpr uint64_t kOften = 3;
constexpr double kMuchShare = 0.01;
// Of n ranks that are alike each is the last one by chance, and costs as much as any
// other. What all of them do counts as a cause where a rank costs more by so many
// standard deviations.
constexpr double kDeviations = 4;
// A line of code is named if so many looks, and half of them, were at it.
constexpr uint64_t kEnoughLooks = 3;

// One collective, as the rules see it.
struct Judged {
  size_t last = 0;       // the rank
  uint64_t came_ns = 0;  // when
  uint64_t late_ns = 0;  // what each other rank waited for this one alone, at least
  uint64_t cost_ns = 0;  // what they waited, added up
  uint64_t step = 0;
  bool unseen = false;             // when the last one came is not known exactly
  const Before* before = nullptr;  // what the last rank did before
  std::optional<Excess> excess;
};

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
    TellUnusual();
    TellUsual();
    Finish();
    return std::move(story_);
  }

 private:
  // Waits until all had come, and by how much the last one was late.
  void Consider(const Collective& one) {
    Judged judged;
    uint64_t second_ns = 0;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const uint64_t start = bursts_[r][one[r]].start_ns;
      judged.unseen = judged.unseen || bursts_[r][one[r]].unseen;
      if (start >= judged.came_ns) {
        second_ns = judged.came_ns;
        judged.came_ns = start;
        judged.last = r;
      } else {
        second_ns = std::max(second_ns, start);
      }
    }
    judged.late_ns = judged.came_ns - second_ns;
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const Burst& burst = bursts_[r][one[r]];
      const uint64_t waited = Waited(ranks_[r], burst, burst.start_ns, judged.came_ns);
      story_.ranks[r].waited_ns += waited;
      waited_ns_ += waited;
      if (r == judged.last) continue;
      const uint64_t for_last = Waited(ranks_[r], burst, second_ns, judged.came_ns);
      judged.late_ns = std::min(judged.late_ns, for_last);
      judged.cost_ns += for_last;
    }
    const size_t burst = one[judged.last];
    judged.step = ranks_[judged.last].steps.empty() ? judged_.size()
                                                    : bursts_[judged.last][burst].step;
    judged.before = habits_[judged.last].Find(burst);
    if (judged.before != nullptr && CameLastForSure(one, judged)) {
      judged.excess = habits_[judged.last].MostUnusual(*judged.before, judged.late_ns);
    }
    if (judged.excess) TakeWhatItExplains(&judged);
    judged_.push_back(judged);
  }

  // Whatever the errors of clocks are. Who may as well have come before another is
  // charged with nothing.
  bool CameLastForSure(const Collective& one, const Judged& judged) const {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      const uint64_t error_ns =
          ErrorBetween(ranks_[judged.last], ranks_[r], judged.came_ns);
      if (error_ns > 0 && judged.came_ns - bursts_[r][one[r]].start_ns <= error_ns) {
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

  void CountUnmatched() {
    for (size_t r = 0; r < ranks_.size(); ++r) {
      std::vector<bool> matched(bursts_[r].size());
      for (const Collective& one : matched_.collectives) matched[one[r]] = true;
      for (size_t i = 0; i < matched.size(); ++i) {
        if (matched[i]) continue;
        const Burst& burst = bursts_[r][i];
        story_.unmatched_ns += Waited(ranks_[r], burst, burst.start_ns, burst.end_ns);
      }
    }
  }

  // The median distance of steps, or of collectives where there are none.
  uint64_t StepNs() const {
    std::vector<uint64_t> distances;
    const std::vector<uint64_t>& steps = ranks_.front().steps;
    for (size_t i = 1; i < steps.size(); ++i) {
      distances.push_back(steps[i] - steps[i - 1]);
    }
    for (size_t i = 1; steps.empty() && i < judged_.size(); ++i) {
      distances.push_back(judged_[i].came_ns - judged_[i - 1].came_ns);
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
        by_cause[{judged.last, judged.excess->what}].push_back(&judged);
      }
    }
    const uint64_t span =
        judged_.empty() ? 0 : judged_.back().came_ns - judged_.front().came_ns;
    for (const auto& [key, late] : by_cause) {
      Cause cause = Sum(late);
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
      const std::vector<bool> more = CostMore(all);
      for (size_t r = 0; r < ranks_.size(); ++r) {
        if (!more[r]) continue;
        std::vector<const Judged*> late = all;
        std::erase_if(late, [&](const Judged* judged) {
          return judged->last != r || !IsLate(*judged);
        });
        if (late.size() < kOften) continue;
        Cause cause = Sum(late);
        cause.recorded = key.first;
        cause.what = key.first ? key.second : SeenMost(r, late);
        Add(r, cause, late);
      }
    }
  }

  // By rank, of collectives that one cause explains.
  std::vector<bool> CostMore(const std::vector<const Judged*>& all) const {
    double sum = 0, squares = 0;
    std::vector<double> cost(ranks_.size());
    for (const Judged* judged : all) {
      const auto late = static_cast<double>(judged->late_ns);
      sum += late;
      squares += late * late;
      cost[judged->last] += late;
    }
    const auto n = static_cast<double>(ranks_.size());
    const double least = sum / n + kDeviations * std::sqrt(squares * (n - 1)) / n;
    std::vector<bool> more(ranks_.size());
    for (size_t r = 0; r < ranks_.size(); ++r) more[r] = sum > 0 && cost[r] >= least;
    return more;
  }

  static Cause Sum(const std::vector<const Judged*>& late) {
    Cause cause;
    std::set<uint64_t> steps;
    for (const Judged* judged : late) {
      ++cause.count;
      steps.insert(judged->step);
      cause.late_ns += judged->late_ns;
      cause.cost_ns += judged->cost_ns;
    }
    cause.steps = steps.size();
    return cause;
  }

  uint32_t SeenMost(size_t rank, const std::vector<const Judged*>& late) const {
    std::map<uint32_t, uint64_t> seen;
    uint64_t all = 0;
    for (const Judged* judged : late) {
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
    for (const Judged* judged : late) late_steps_.insert({rank, judged->step});
    told_ns_ += cause.cost_ns;
  }

  void Finish() {
    for (const Rank& rank : ranks_) {
      story_.steps = std::max<uint64_t>(story_.steps, rank.steps.size());
    }
    if (story_.steps == 0) story_.steps = story_.collectives;
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
  if (a.clock == b.clock) return 0;
  return (a.clock != nullptr ? a.clock->ErrorAt(time_ns) : 0) +
         (b.clock != nullptr ? b.clock->ErrorAt(time_ns) : 0);
}

Story WhoWaitedForWhom(const std::vector<Rank>& ranks) { return Judge(ranks).Tell(); }

}  // namespace lull::ranks
