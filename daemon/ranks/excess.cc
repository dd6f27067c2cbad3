#include "daemon/ranks/excess.h"

#include <algorithm>
#include <utility>

#include "daemon/base/median.h"

namespace lull::ranks {
namespace {

// What one thread was in, the innermost at each instant. `nested` is in the order of
// starts, and what begins within another ends within it, or is cut there.
std::vector<Stretch> Innermost(const std::vector<Stretch>& nested) {
  std::vector<Stretch> flat, open;
  uint64_t at = 0;
  auto add = [&](uint64_t until_ns) {
    if (at < until_ns) {
      flat.push_back(open.back());
      flat.back().start_ns = at;
      flat.back().end_ns = until_ns;
      open.back().blocked_ns = 0;  // it is told
    }
    at = std::max(at, until_ns);
  };
  auto close = [&](uint64_t until_ns) {
    while (!open.empty() && open.back().end_ns <= until_ns) {
      add(open.back().end_ns);
      open.pop_back();
    }
    if (!open.empty()) add(until_ns);
  };
  for (const Stretch& one : nested) {
    close(one.start_ns);
    at = std::max(at, one.start_ns);
    open.push_back(one);
    if (open.size() > 1) {
      open.back().end_ns = std::min(one.end_ns, open[open.size() - 2].end_ns);
    }
  }
  close(UINT64_MAX);
  return flat;
}

auto FirstThatEndsAfter(const std::vector<Stretch>& flat, uint64_t time_ns) {
  return std::upper_bound(
      flat.begin(), flat.end(), time_ns,
      [](uint64_t time, const Stretch& one) { return time < one.end_ns; });
}

// What encloses the others.
std::vector<Stretch> Outermost(const std::vector<Stretch>& nested) {
  std::vector<Stretch> outer;
  for (const Stretch& one : nested) {
    if (outer.empty() || outer.back().end_ns <= one.start_ns) outer.push_back(one);
  }
  return outer;
}

// Up to where what the rank did may have made it late. What it was in when the
// collective was over for others has not: it had come before that.
uint64_t MayMatterUntil(const std::vector<Stretch>& outer, const Burst& burst) {
  if (!burst.unseen) return burst.start_ns;
  const auto one = FirstThatEndsAfter(outer, burst.over_ns);
  return one == outer.end() ? burst.start_ns : std::min(burst.start_ns, one->start_ns);
}

// What each rank usually spent. There may be a thousand ranks, and as many lines.
class OfRanks {
 public:
  void Add(uint64_t ns) { ns_.push_back(ns); }
  // All others have spent nothing.
  void Sort(size_t ranks) {
    nothing_ = ranks - ns_.size();
    std::sort(ns_.begin(), ns_.end());
  }
  // The lower median of the others than one that has spent `own`.
  uint64_t MedianWithout(uint64_t own) const {
    const auto less = std::lower_bound(ns_.begin(), ns_.end(), own) - ns_.begin();
    const size_t at = own == 0 ? 0 : nothing_ + static_cast<size_t>(less);
    const size_t middle = (nothing_ + ns_.size() - 2) / 2;
    const size_t other = middle < at ? middle : middle + 1;
    return other < nothing_ ? 0 : ns_[other - nothing_];
  }

 private:
  size_t nothing_ = 0;
  std::vector<uint64_t> ns_;
};

}  // namespace

void Before::Add(const Stretch& one, uint64_t ns) {
  spent_ns[one.what] += ns;
  if (!one.beside_code) return;
  beside_code_ns += ns;
  blocked_ns += one.blocked_ns;
  syncs.insert(one.what);
}

Habits::Habits(const Rank& rank, const std::vector<Burst>& bursts)
    : rank_(rank), spent_(Innermost(rank.spent)), before_(bursts.size()) {
  const std::vector<Stretch> outer = Outermost(rank.spent);
  for (size_t i = 0; i < bursts.size(); ++i) {
    if (!bursts[i].since_ns) continue;
    Before before{*bursts[i].since_ns, 0, bursts[i].line, {}, 0, 0, 0, {}};
    before.end_ns = std::max(before.start_ns, MayMatterUntil(outer, bursts[i]));
    before.code_ns = before.end_ns - before.start_ns;
    const uint64_t from_ns = bursts[i].spent_since_ns.value_or(before.start_ns);
    for (auto one = FirstThatEndsAfter(spent_, from_ns);
         one != spent_.end() && one->start_ns < before.end_ns; ++one) {
      const uint64_t end_ns = std::min(one->end_ns, before.end_ns);
      before.Add(*one, end_ns - std::max(one->start_ns, from_ns));
      if (end_ns <= before.start_ns) continue;
      before.code_ns -= end_ns - std::max(one->start_ns, before.start_ns);
    }
    before_[i] = std::move(before);
  }
  struct All {
    std::vector<uint64_t> code_ns, beside_code_ns, blocked_ns;
    std::map<uint32_t, std::vector<uint64_t>> spent_ns;
  };
  std::map<uint32_t, All> by_line;
  for (const std::optional<Before>& before : before_) {
    if (!before) continue;
    All& all = by_line[before->line];
    all.code_ns.push_back(before->code_ns);
    all.beside_code_ns.push_back(before->beside_code_ns);
    all.blocked_ns.push_back(before->blocked_ns);
    for (const auto& [what, ns] : before->spent_ns) all.spent_ns[what].push_back(ns);
  }
  for (auto& [line, all] : by_line) {
    Usual& usual = usual_[line];
    const size_t times = all.code_ns.size();
    usual.code_ns = LowerMedian(std::move(all.code_ns));
    usual.beside_code_ns = LowerMedian(std::move(all.beside_code_ns));
    usual.blocked_ns = LowerMedian(std::move(all.blocked_ns));
    for (auto& [what, ns] : all.spent_ns) {
      ns.resize(times);  // it was not there the other times
      usual.spent_ns[what] = LowerMedian(std::move(ns));
    }
  }
}

void Habits::Compare(std::vector<Habits>& all) {
  struct OfLine {
    OfRanks code_ns, beside_code_ns, blocked_ns;
    std::map<uint32_t, OfRanks> spent_ns;
    size_t ranks = 0;
  };
  std::map<uint32_t, OfLine> by_line;
  for (const Habits& rank : all) {
    for (const auto& [line, usual] : rank.usual_) {
      OfLine& of_line = by_line[line];
      ++of_line.ranks;
      of_line.code_ns.Add(usual.code_ns);
      of_line.beside_code_ns.Add(usual.beside_code_ns);
      of_line.blocked_ns.Add(usual.blocked_ns);
      for (const auto& [what, ns] : usual.spent_ns) of_line.spent_ns[what].Add(ns);
    }
  }
  for (auto& [line, of_line] : by_line) {
    of_line.code_ns.Sort(of_line.ranks);
    of_line.beside_code_ns.Sort(of_line.ranks);
    of_line.blocked_ns.Sort(of_line.ranks);
    for (auto& [what, spent] : of_line.spent_ns) spent.Sort(of_line.ranks);
  }
  for (Habits& rank : all) {
    for (auto& [line, usual] : rank.usual_) {
      const OfLine& of_line = by_line.at(line);
      if (of_line.ranks == 1) continue;
      auto or_others = [](uint64_t own, const OfRanks& all_of_them) {
        return std::min(own, all_of_them.MedianWithout(own));
      };
      usual.code_ns = or_others(usual.code_ns, of_line.code_ns);
      usual.beside_code_ns = or_others(usual.beside_code_ns, of_line.beside_code_ns);
      usual.blocked_ns = or_others(usual.blocked_ns, of_line.blocked_ns);
      for (auto& [what, ns] : usual.spent_ns) {
        ns = or_others(ns, of_line.spent_ns.at(what));
      }
    }
  }
}

std::optional<Excess> Habits::MostUnusual(
    const Before& before, uint64_t late_ns,
    const std::vector<const Before*>& others) const {
  const Usual& usual = usual_.at(before.line);
  auto of_others = [&others](auto spent_by) {
    std::vector<uint64_t> theirs;
    for (const Before* other : others) theirs.push_back(spent_by(*other));
    return LowerMedian(std::move(theirs));
  };
  auto beyond = [&](uint64_t Before::*spent_ns, uint64_t usual_ns) {
    usual_ns = std::max(usual_ns, of_others([spent_ns](const Before& other) {
                          return other.*spent_ns;
                        }));
    return before.*spent_ns - std::min(before.*spent_ns, usual_ns);
  };
  // A sync that blocked for longer than usual has cost as much more, and no more.
  const uint64_t beside_code_ns = beyond(&Before::beside_code_ns, usual.beside_code_ns);
  const uint64_t of_code_ns =
      beside_code_ns -
      std::min(beside_code_ns, beyond(&Before::blocked_ns, usual.blocked_ns));
  Excess most{true, 0, false, 0};
  for (const auto& [what, ns] : before.spent_ns) {
    if (what == 0) continue;
    const uint64_t usual_ns = std::max(
        usual.spent_ns.at(what), of_others([thing = what](const Before& other) {
          const auto spent = other.spent_ns.find(thing);
          return spent == other.spent_ns.end() ? 0 : spent->second;
        }));
    const uint64_t more_ns =
        usual_ns + most.ns + (before.syncs.contains(what) ? of_code_ns : 0);
    if (ns <= more_ns) continue;
    most.ns += ns - more_ns;
    most.what = what;
    most.usual = usual_ns > 0;
  }
  if (most.ns > 0 && most.ns >= late_ns - late_ns / 2) return most;
  const uint64_t code_ns = beyond(&Before::code_ns, usual.code_ns) + of_code_ns;
  if (code_ns < late_ns - late_ns / 2) return std::nullopt;
  return Excess{false, 0, true, code_ns};
}

bool Habits::IsRecorded(uint64_t time_ns) const {
  const auto one = FirstThatEndsAfter(spent_, time_ns);
  return one != spent_.end() && one->start_ns <= time_ns;
}

}  // namespace lull::ranks
