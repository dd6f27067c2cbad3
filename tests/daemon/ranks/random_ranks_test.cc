// Random programs of eight ranks whose late ones are known.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>

#include "daemon/ranks/ranks.h"
#include "tests/trials.h"

namespace lull::ranks {
namespace {

constexpr uint64_t kMicro = 1'000, kMilli = 1'000'000;
constexpr size_t kRanks = 8;
constexpr uint32_t kFirstLine = 12;

struct Truth {
  std::vector<Rank> ranks = std::vector<Rank>(kRanks);
  std::map<std::pair<size_t, uint32_t>, uint64_t> cost_ns;  // by rank and cause
  uint64_t all_cost_ns = 0;
};

class Program {
 public:
  explicit Program(uint64_t seed) : random_(seed) {}

  // Each culprit has a cause of its own and is late in every n-th step.
  Truth Run(size_t culprits) {
    struct Culprit {
      size_t rank;
      uint32_t cause;
      uint64_t late_ns;
      int period;
    };
    std::vector<Culprit> all;
    for (size_t i = 0; i < culprits; ++i) {
      all.push_back({Any(0, kRanks - 1), static_cast<uint32_t>(100 + i),
                     Any(5 * kMilli, 80 * kMilli), static_cast<int>(Any(5, 20))});
    }
    const uint64_t code_ns = Any(2 * kMilli, 30 * kMilli);
    const uint64_t transfer_ns = Any(10 * kMicro, 3 * kMilli);
    const bool multiple = Any(0, 1) == 1;  // two collectives in a step
    Truth truth;
    std::vector<uint64_t> now(kRanks, 1'000 * kMilli);
    for (int step = 0; step < 300; ++step) {
      for (size_t r = 0; r < kRanks; ++r) truth.ranks[r].steps.push_back(now[r]);
      for (uint32_t line = 0; line < (multiple ? 2u : 1u); ++line) {
        std::vector<std::pair<uint64_t, uint32_t>> extra(kRanks);  // ns, cause
        std::vector<uint64_t> came(kRanks);
        for (const Culprit& culprit : all) {
          if (line != 0 || step % culprit.period != 0) continue;
          if (extra[culprit.rank].first != 0) continue;
          extra[culprit.rank] = {culprit.late_ns, culprit.cause};
        }
        for (size_t r = 0; r < kRanks; ++r) {
          const uint64_t code = code_ns + Any(0, code_ns / 50);
          uint64_t at = now[r] + code / 3;
          // All of them sleep a little, and read.
          truth.ranks[r].spent.push_back({at, at + 200 * kMicro, 1});
          at += 200 * kMicro;
          if (extra[r].first != 0) {
            truth.ranks[r].spent.push_back({at, at + extra[r].first, extra[r].second});
            at += extra[r].first;
          }
          came[r] = at + code - code / 3;
        }
        Wait(came, transfer_ns, kFirstLine + line, truth, now);
        std::vector<uint64_t> sorted = came;
        std::sort(sorted.begin(), sorted.end());
        const size_t last = static_cast<size_t>(
            std::max_element(came.begin(), came.end()) - came.begin());
        const uint64_t late = sorted[kRanks - 1] - sorted[kRanks - 2];
        // Alone it costs what it comes after the last but one, who may be late, too.
        if (extra[last].first != 0 && step > 0) {
          truth.cost_ns[{last, extra[last].second}] += late * (kRanks - 1);
          truth.all_cost_ns += late * (kRanks - 1);
        }
      }
    }
    return truth;
  }

 private:
  uint64_t Any(uint64_t low, uint64_t high) {
    return std::uniform_int_distribution<uint64_t>(low, high)(random_);
  }

  // Ranks leave one after another; a wait under 50 us is not recorded.
  void Wait(const std::vector<uint64_t>& came, uint64_t transfer_ns, uint32_t line,
            Truth& truth, std::vector<uint64_t>& now) {
    const uint64_t all_came = *std::max_element(came.begin(), came.end());
    for (size_t r = 0; r < kRanks; ++r) {
      now[r] = all_came + transfer_ns + Any(0, 60 * kMicro);
      if (now[r] - came[r] < 50 * kMicro) continue;
      truth.ranks[r].waits.push_back({came[r], now[r], line});
    }
  }

  std::mt19937_64 random_;
};

uint64_t Apart(uint64_t a, uint64_t b) { return a > b ? a - b : b - a; }

constexpr uint64_t kRankPrograms = Trials<uint64_t>(1000, 30);

TEST(RandomRanks, NamesEachLateRankItsCauseAndItsCost) {
  uint64_t known = 0, found = 0, invented_ns = 0, all_ns = 0;
  for (uint64_t seed = 0; seed < kRankPrograms; ++seed) {
    const Truth truth = Program(seed).Run(1 + seed % 3);
    const Story story = WhoWaitedForWhom(truth.ranks);
    std::map<std::pair<size_t, uint32_t>, uint64_t> told;
    for (size_t r = 0; r < kRanks; ++r) {
      for (const Cause& cause : story.ranks[r].causes) {
        told[{r, cause.recorded ? cause.what : 0}] += cause.cost_ns;
      }
    }
    for (const auto& [key, cost] : truth.cost_ns) {
      ++known;
      const bool right = Apart(told[key], cost) <= cost / 50;
      found += right ? 1 : 0;
      told.erase(key);
    }
    for (const auto& [key, cost] : told) invented_ns += cost;
    all_ns += truth.all_cost_ns;
    EXPECT_GE(story.collectives, 200u);
  }
  std::cout << found << " of " << known << " causes, their costs within 2 %; "
            << 100.0 * static_cast<double>(invented_ns) / static_cast<double>(all_ns)
            << " % invented\n";
  if (kSanitized) return;
  EXPECT_GE(known, 1500u);
  EXPECT_GE(100 * found, 99 * known);
  EXPECT_LE(invented_ns, all_ns / 1000);
}

TEST(RandomRanks, NamesNobodyWhereNobodyIsLate) {
  for (uint64_t seed = 0; seed < kRankPrograms; ++seed) {
    const Story story = WhoWaitedForWhom(Program(seed).Run(0).ranks);
    for (const RankStory& rank : story.ranks) {
      EXPECT_TRUE(rank.causes.empty()) << seed;
      EXPECT_EQ(rank.late_steps, 0u);
    }
    EXPECT_GE(story.collectives, 200u);
  }
}

}  // namespace
}  // namespace lull::ranks
