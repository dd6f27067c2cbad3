// Who had waited for whom elsewhere, where times contradict each other.

#include "daemon/ranks/chains.h"

#include <gtest/gtest.h>

#include <vector>

#include "daemon/ranks/collectives.h"
#include "daemon/ranks/ranks.h"

namespace lull::ranks {
namespace {

Stretch Wait(uint64_t start_ns, uint64_t end_ns, uint64_t collective, uint32_t group) {
  Stretch wait{start_ns, end_ns, 100 + group};
  wait.collective = collective;
  wait.members = 2;
  wait.group = group;
  return wait;
}

// Ranks 0 and 1 saw two collectives in different orders, within the errors of their
// times. Rank 0 came late to a third one, of another group, from one of these.
std::vector<Rank> InTwoOrders() {
  std::vector<Rank> ranks(3);
  for (Rank& rank : ranks) rank.times_error_ns = 5'000;
  ranks[0].waits = {Wait(1'000'000, 1'010'000, 1, 2), Wait(2'000'000, 2'100'000, 2, 1),
                    Wait(2'105'000, 2'110'000, 3, 1), Wait(2'300'000, 2'400'000, 4, 2)};
  ranks[1].waits = {Wait(1'020'000, 1'030'000, 5, 1), Wait(2'000'000, 2'104'000, 3, 1),
                    Wait(2'106'000, 2'112'000, 2, 1)};
  ranks[2].waits = {Wait(1'000'000, 1'010'000, 1, 2), Wait(2'000'000, 2'400'000, 4, 2)};
  ranks[0].waits.insert(ranks[0].waits.begin() + 1, Wait(1'020'000, 1'030'000, 5, 1));
  return ranks;
}

TEST(Chains, DoNotGoInCircles) {
  const std::vector<Rank> ranks = InTwoOrders();
  const Matched matched = Match(ranks);
  ASSERT_EQ(matched.collectives.size(), 5u);
  const Chains chains(ranks, matched);
  for (size_t i = 0; i < matched.collectives.size(); ++i) {
    EXPECT_LT(chains.Behind(i).size(), matched.collectives.size());
    for (size_t j = 0; j < i; ++j) chains.HeldUpOnlyTheLast(i, j);
  }
}

TEST(Chains, OfTimesThatContradictEachOtherAStoryIsTold) {
  EXPECT_EQ(WhoWaitedForWhom(InTwoOrders()).collectives, 5u);
}

}  // namespace
}  // namespace lull::ranks
