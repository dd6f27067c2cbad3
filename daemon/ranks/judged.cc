#include "daemon/ranks/judged.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace lull::ranks {
namespace {

// Of n ranks that are alike each is the last one by chance, and costs as much as any
// other. What all of them do counts as a cause where a rank costs more by so many
// standard deviations.
constexpr double kDeviations = 4;

// Collectives of equally many members.
struct Share {
  double sum = 0, squares = 0;

  void Add(double late) {
    sum += late;
    squares += late * late;
  }
  double Mean(size_t members) const { return sum / static_cast<double>(members); }
  double Deviation(size_t members) const {
    const auto n = static_cast<double>(members);
    return std::sqrt(squares * (n - 1)) / n;
  }
};

}  // namespace

Cause SumOf(const std::vector<const Judged*>& late) {
  struct Step {
    uint64_t count = 0, late_ns = 0;  // of its own
    uint64_t passed_on_ns = 0;        // the most that others were late by for it
  };
  std::map<uint64_t, Step> steps;
  Cause cause;
  for (const Judged* judged : late) {
    Step& step = steps[judged->step];
    if (judged->passed_on) {
      step.passed_on_ns = std::max(step.passed_on_ns, judged->late_ns);
    } else {
      ++step.count;
      step.late_ns += judged->late_ns;
    }
    cause.cost_ns += judged->cost_ns;
  }
  for (const auto& [number, step] : steps) {
    cause.count += std::max<uint64_t>(step.count, 1);
    cause.late_ns += step.count > 0 ? step.late_ns : step.passed_on_ns;
  }
  cause.steps = steps.size();
  return cause;
}

std::vector<bool> CostMore(const std::vector<const Judged*>& all, size_t ranks) {
  std::vector<double> cost(ranks);
  Share everyone;                                    // of collectives of all ranks
  std::vector<std::map<size_t, Share>> some(ranks);  // of others, by their members
  double sum = 0;
  for (const Judged* judged : all) {
    if (judged->passed_on) continue;
    const auto late = static_cast<double>(judged->late_ns);
    sum += late;
    cost[judged->last] += late;
    const size_t members = judged->members->size();
    if (members == ranks) {
      everyone.Add(late);
    } else {
      for (const Member& member : *judged->members) {
        some[member.rank][members].Add(late);
      }
    }
  }
  std::vector<bool> more(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    double mean = everyone.Mean(ranks), deviation = everyone.Deviation(ranks);
    for (const auto& [members, share] : some[r]) {
      mean += share.Mean(members);
      deviation = std::hypot(deviation, share.Deviation(members));
    }
    more[r] = sum > 0 && cost[r] > 0 && cost[r] >= mean + kDeviations * deviation;
  }
  return more;
}

}  // namespace lull::ranks
