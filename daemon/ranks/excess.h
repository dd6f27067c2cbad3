// What a rank did before a collective, beyond what it usually does there and what other
// ranks usually do there.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "daemon/ranks/collectives.h"

namespace lull::ranks {

// The time from a rank's burst before to the one in question, or to what went on beyond
// the end of that collective.
struct Before {
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
  uint32_t line = 0;                      // of that burst
  std::map<uint32_t, uint64_t> spent_ns;  // by what
  uint64_t code_ns = 0;                   // the rest
  // Of spent_ns: code ran, too, after syncs that had blocked for so long.
  uint64_t beside_code_ns = 0;
  uint64_t blocked_ns = 0;
  std::set<uint32_t> syncs;  // by what

  void Add(const Stretch& one, uint64_t ns);
};

struct Excess {
  bool recorded = false;  // else code
  uint32_t what = 0;
  bool usual = false;  // it is there mostly, if not for so long
  uint64_t ns = 0;     // beyond the usual
};

// Of one rank. What it was made of must outlive it.
class Habits {
 public:
  Habits(const Rank& rank, const std::vector<Burst>& bursts);

  // Of all ranks: what a rank always does and the others mostly do not is unusual, too.
  static void Compare(std::vector<Habits>& all);

  // nullptr where nobody knows what came before, as for the first burst.
  const Before* Find(size_t burst) const {
    return before_[burst] ? &*before_[burst] : nullptr;
  }

  // What took longer than usual before bursts of this line, if it explains half of
  // `late_ns` or more. What was recorded comes before code. What `others` mostly did
  // before this very collective is usual, too.
  std::optional<Excess> MostUnusual(const Before& before, uint64_t late_ns,
                                    const std::vector<const Before*>& others) const;

  // Calls visit(what) for each look at the rank's code in that time.
  template <typename Visitor>
  void ForEachLook(const Before& before, Visitor&& visit) const {
    auto look = std::lower_bound(
        rank_.looks.begin(), rank_.looks.end(), before.start_ns,
        [](const Look& one, uint64_t time_ns) { return one.time_ns < time_ns; });
    for (; look != rank_.looks.end() && look->time_ns < before.end_ns; ++look) {
      if (!IsRecorded(look->time_ns)) visit(look->what);
    }
  }

 private:
  struct Usual {
    std::map<uint32_t, uint64_t> spent_ns;
    uint64_t code_ns = 0;
    uint64_t beside_code_ns = 0;
    uint64_t blocked_ns = 0;
  };

  bool IsRecorded(uint64_t time_ns) const;

  const Rank& rank_;
  std::vector<Stretch> spent_;                 // without nesting: the innermost counts
  std::vector<std::optional<Before>> before_;  // by burst
  std::map<uint32_t, Usual> usual_;            // by the line of the burst: medians
};

}  // namespace lull::ranks
