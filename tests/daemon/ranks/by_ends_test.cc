#include "daemon/ranks/by_ends.h"

#include <gtest/gtest.h>

#include <ctime>

#include "tests/daemon/ranks/median_ratio.h"

namespace lull::ranks {
namespace {

TEST(SpreadOfEnds, IsTheLargest) {
  EXPECT_EQ(SpreadOfEnds({{{0, 1000, 1}, {2000, 3000, 2}},
                          {{900, 1003, 1}, {2900, 2995, 2}},
                          {{500, 1001, 1}, {2000, 3002, 2}}}),
            7u);
}

TEST(SpreadOfEnds, IsOfNothingWhereRanksDoNotDoTheSame) {
  EXPECT_FALSE(SpreadOfEnds({{{0, 10, 1}}, {{0, 10, 1}, {20, 30, 1}}}));
  EXPECT_FALSE(SpreadOfEnds({{{0, 10, 1}}, {{0, 10, 2}}}));
  EXPECT_FALSE(SpreadOfEnds({{}, {}}));
}

// Kernels of different groups, or of different steps, do not end together.
TEST(SpreadOfEnds, IsLargeWhereTheyDoNotBelongTogether) {
  EXPECT_EQ(SpreadOfEnds({{{0, 1000, 1}}, {{5000, 6000, 1}}}), 5000u);
}

constexpr uint64_t kApartNs = 20;

TEST(ByEnds, FindsGroupsOfSomeRanks) {
  std::vector<std::vector<Ended>> ranks(4);
  for (uint64_t step = 1; step <= 20; ++step) {
    const uint64_t at = 10'000 * step;
    for (uint64_t r = 0; r < 4; ++r) {
      const uint64_t group = r / 2;
      ranks[r].push_back({at - 500, at + 1000 * group + r, 1, 7});
      ranks[r].push_back({at + 3000, at + 5000 + r, 1, 8});
      ranks[r].push_back({at + 3000, at + 5000 + 3 * r, 2, 8});
    }
  }
  const Together found = ByEnds(ranks, kApartNs);
  EXPECT_EQ(found.spread_ns, 9u);
  for (size_t r = 0; r < 4; ++r) {
    for (size_t i = 0; i < 60; i += 3) {
      const Identity& pair = found.ranks[r][i];
      EXPECT_EQ(pair.members, 2u);
      EXPECT_EQ(pair.collective, found.ranks[r / 2 * 2][i].collective);
      EXPECT_EQ(pair.group, found.ranks[r / 2 * 2][0].group);
      EXPECT_NE(pair.collective, found.ranks[(r + 2) % 4][i].collective);
      for (size_t of_all : {i + 1, i + 2}) {
        EXPECT_EQ(found.ranks[r][of_all].members, 4u);
        EXPECT_EQ(found.ranks[r][of_all].collective, found.ranks[0][of_all].collective);
        EXPECT_EQ(found.ranks[r][of_all].group, found.ranks[0][1].group);
      }
      EXPECT_NE(found.ranks[r][i + 1].collective, found.ranks[r][i + 2].collective);
    }
  }
}

// They are in step in four of five steps, as those of tensors are after those of
// gradients.
TEST(ByEnds, TellsGroupsApartThatAreMostlyInStep) {
  std::vector<std::vector<Ended>> ranks(4);
  for (uint64_t step = 1; step <= 20; ++step) {
    for (uint64_t r = 0; r < 4; ++r) {
      const uint64_t later = step % 5 == 0 ? 1000 * (r / 2) : 0;
      const auto stream = static_cast<uint32_t>(10 + r);
      ranks[r].push_back({10'000 * step, 10'500 * step + later, 1, stream});
    }
  }
  const Together found = ByEnds(ranks, kApartNs);
  for (size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(found.ranks[0][i].members, 2u) << i;
    EXPECT_EQ(found.ranks[0][i].collective, found.ranks[1][i].collective);
    EXPECT_EQ(found.ranks[2][i].collective, found.ranks[3][i].collective);
    EXPECT_NE(found.ranks[0][i].collective, found.ranks[2][i].collective);
  }
}

// The one that is missing may be the one that the others waited for.
TEST(ByEnds, DoesNotKnowWhoIsMissing) {
  std::vector<std::vector<Ended>> ranks(3);
  for (uint64_t i = 0; i < 20; ++i) {
    for (uint64_t r = 0; r < 3; ++r) {
      if (r == 2 && i % 10 == 0) continue;  // not traced
      ranks[r].push_back({1000 * i, 1000 * i + 500, 1});
    }
  }
  const Together found = ByEnds(ranks, kApartNs);
  EXPECT_EQ(found.ranks[0][0].collective, 0u);
  EXPECT_NE(found.ranks[0][1].collective, 0u);
  EXPECT_EQ(found.ranks[0][10].collective, 0u);
}

TEST(ByEnds, DoesNotKnowWhichOfTwoItIs) {
  const Together found = ByEnds(
      {{{0, 100, 1}, {105, 110, 1}, {900, 1000, 1}}, {{0, 104, 1}, {900, 1001, 1}}},
      kApartNs);
  EXPECT_EQ(found.ranks[0][0].collective, 0u);
  EXPECT_EQ(found.ranks[0][1].collective, 0u);
  EXPECT_NE(found.ranks[0][2].collective, 0u);
  EXPECT_EQ(found.ranks[1][1].collective, found.ranks[0][2].collective);
}

TEST(ByEnds, OfOneRankAloneNothingIsKnown) {
  const Together found = ByEnds({{{0, 100, 1}}, {{0, 500, 1}}}, kApartNs);
  EXPECT_EQ(found.ranks[0][0].collective, 0u);
  EXPECT_EQ(found.ranks[1][0].collective, 0u);
}

// A rank of which many kernels were lost: the others seem to be alone then.
TEST(ByEnds, DoesNotTakeThoseForAGroupOfWhichKernelsAreSeenOfTheRestAtTimes) {
  std::vector<std::vector<Ended>> ranks(3);
  for (uint64_t i = 0; i < 60; ++i) {
    for (uint64_t r = 0; r < 3; ++r) {
      if (r == 2 && i % 3 == 0) continue;
      ranks[r].push_back({1000 * i, 1000 * i + 500, 1, static_cast<uint32_t>(5 + r)});
    }
  }
  const Together found = ByEnds(ranks, kApartNs);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(found.ranks[0][i].members, i % 3 == 0 ? 0u : 3u) << i;
  }
}

TEST(ByEnds, DoesNotTakeThoseForAGroupThatAloneWereTraced) {
  std::vector<std::vector<Ended>> ranks(3);
  for (uint64_t i = 0; i < 60; ++i) {
    for (uint64_t r = 0; r < 3; ++r) {
      if (r == 2 && i >= 10 && i != 40) continue;
      ranks[r].push_back({1000 * i, 1000 * i + 500, 1});
    }
  }
  const std::vector<std::vector<Traced>> traced = {
      {{0, 60'000}}, {{0, 60'000}}, {{0, 10'000}, {40'000, 41'000}}};
  const Together found = ByEnds(ranks, kApartNs, traced);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(found.ranks[0][i].members, i < 10 || i == 40 ? 3u : 0u) << i;
  }
}

// Pairs share tensors, and all share gradients, on one stream. Ranks 0 and 1 wait for
// the others then, and not for each other.
TEST(ByEnds, OfALargerGroupOnTheSameStreamAPartIsNoCollective) {
  std::vector<std::vector<Ended>> ranks(4);
  for (uint64_t i = 0; i < 60; ++i) {
    const bool all = i % 6 == 5;
    for (uint64_t r = 0; r < 4; ++r) {
      const uint64_t start_ns = 10'000 * i + 100 * (r % 2) + (all ? 4000 * (r / 2) : 0);
      const uint64_t end_ns = 10'000 * i + (all ? 6000 : 1000 + 500 * (r / 2));
      ranks[r].push_back({start_ns, end_ns + r, 1, 7});
    }
  }
  const Together found = ByEnds(ranks, kApartNs);
  for (size_t i = 0; i < 60; ++i) {
    EXPECT_EQ(found.ranks[0][i].members, i % 6 == 5 ? 0u : 2u) << i;
  }
}

// Of each collective another rank is missing, so that there are as many sets.
double ProcessorTimeOfManySets(size_t count, size_t kernels) {
  std::vector<std::vector<Ended>> ranks(count);
  for (uint64_t i = 0; i < kernels; ++i) {
    for (uint64_t r = 0; r < count; ++r) {
      if (r != i) ranks[r].push_back({1000 * i, 1000 * i + 500, 1});
    }
  }
  const std::clock_t before = std::clock();
  const Together found = ByEnds(ranks, kApartNs);
  const std::clock_t after = std::clock();
  EXPECT_EQ(found.ranks[0][0].collective, 0u);
  return static_cast<double>(after - before);
}

// Four times as many kernels, of twice as many sets, once took 13 times as long.
TEST(ByEnds, TakesTimeByKernelsAndNotBySets) {
  EXPECT_LT(MedianRatio([] { return ProcessorTimeOfManySets(512, 480); },
                        [] { return ProcessorTimeOfManySets(256, 240); }),
            8);
}

}  // namespace
}  // namespace lull::ranks
