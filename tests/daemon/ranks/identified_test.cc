// Waits that tell which collective they are for: each rule by itself.

#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>
#include <vector>

#include "daemon/ranks/ranks.h"
#include "tests/daemon/ranks/median_ratio.h"

namespace lull::ranks {
namespace {

constexpr uint64_t kMsec = 1'000'000;
constexpr uint32_t kNap = 8, kKernel = 9;

// Ranks whose devices compute, and meet in communicators.
class Devices {
 public:
  explicit Devices(size_t count) : ranks(count), now_ns(count, 1000 * kMsec) {}

  void Step() {
    for (size_t r = 0; r < ranks.size(); ++r) ranks[r].steps.push_back(now_ns[r]);
  }
  void Spend(size_t rank, uint64_t ns, uint32_t what) {
    ranks[rank].spent.push_back({now_ns[rank], now_ns[rank] + ns, what});
    now_ns[rank] += ns;
  }
  void SpendAll(uint64_t ns, uint32_t what = kKernel) {
    for (size_t r = 0; r < ranks.size(); ++r) Spend(r, ns, what);
  }
  // A millisecond of transfer; `what` is that of the group.
  void Meet(uint32_t group, const std::vector<size_t>& members, uint32_t size = 0) {
    uint64_t came_ns = 0;
    for (const size_t r : members) came_ns = std::max(came_ns, now_ns[r]);
    ++collectives;
    for (const size_t r : members) {
      Stretch wait{now_ns[r], came_ns + kMsec, 100 + group + 1000 * size};
      wait.collective = collectives;
      wait.members = static_cast<uint32_t>(members.size());
      wait.group = group;
      ranks[r].waits.push_back(wait);
      now_ns[r] = came_ns + kMsec;
    }
  }

  Story Tell() const { return WhoWaitedForWhom(ranks); }

  std::vector<Rank> ranks;
  std::vector<uint64_t> now_ns;
  uint64_t collectives = 0;
};

size_t Causes(const Story& story) {
  size_t causes = 0;
  for (const RankStory& rank : story.ranks) causes += rank.causes.size();
  return causes;
}

TEST(Identified, ACollectiveIsOneOfSomeRanks) {
  Devices job(5);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    if (i % 10 == 9) job.Spend(1, 50 * kMsec, kNap);
    job.Meet(1, {0, 1, 2});
    job.Meet(2, {3, 4});
  }
  const Story story = job.Tell();
  EXPECT_EQ(story.collectives, 100u);
  EXPECT_EQ(story.steps, 50u);
  EXPECT_EQ(story.unmatched_ns, 0u);
  EXPECT_EQ(story.unexplained_ns, 0u);
  EXPECT_EQ(Causes(story), 1u);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  const Cause& cause = story.ranks[1].causes[0];
  EXPECT_TRUE(cause.recorded);
  EXPECT_EQ(cause.what, kNap);
  EXPECT_EQ(cause.count, 5u);
  EXPECT_EQ(cause.late_ns, 250 * kMsec);
  EXPECT_EQ(cause.cost_ns, 500 * kMsec) << "of two others";
  EXPECT_EQ(story.ranks[0].waited_ns, 250 * kMsec);
  EXPECT_EQ(story.ranks[3].waited_ns, 0u);
}

// Of two buckets of gradients: while the others wait for the first of a late rank they
// compute what the second one needs, and it has yet to.
TEST(Identified, WorkThatOthersDoWhileTheyWaitIsNoCause) {
  Devices job(4);
  for (int i = 0; i < 60; ++i) {
    job.Step();
    job.SpendAll(5 * kMsec);
    // More often than not: else the others' habit would say that it is usual.
    if (i % 5 >= 2) job.Spend(2, 30 * kMsec, kNap);
    const std::vector<uint64_t> began_ns = job.now_ns;
    job.Meet(1, {0, 1, 2, 3});
    // Eight milliseconds of computing for the second bucket begin with the wait.
    for (size_t r = 0; r < 4; ++r) {
      job.ranks[r].spent.push_back({began_ns[r], began_ns[r] + 8 * kMsec, kKernel});
      job.now_ns[r] = std::max(job.now_ns[r], began_ns[r] + 8 * kMsec);
    }
    job.Meet(1, {0, 1, 2, 3}, 1);
  }
  const Story story = job.Tell();
  EXPECT_EQ(Causes(story), 1u);
  ASSERT_EQ(story.ranks[2].causes.size(), 1u);
  EXPECT_EQ(story.ranks[2].causes[0].what, kNap);
  EXPECT_EQ(story.ranks[2].causes[0].cost_ns, 36 * 3 * 30 * kMsec);
}

// Nothing is told of the one that overlaps, nor of what others waited meanwhile.
TEST(Identified, WhatIsLeftAloneIsTold) {
  Devices job(2);
  for (int i = 0; i < 20; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    job.Meet(1, {0, 1});
  }
  Stretch wait = job.ranks[0].waits.back();
  wait.start_ns += kMsec / 2;
  wait.end_ns += 3 * kMsec;
  wait.collective = ++job.collectives;
  wait.group = 2;
  for (Rank& rank : job.ranks) rank.waits.push_back(wait);
  const Story story = job.Tell();
  EXPECT_EQ(story.collectives, 20u);
  EXPECT_EQ(story.unmatched_ns, 2 * (3 * kMsec + kMsec / 2));
}

double ProcessorTimeOfManyKinds(size_t ranks) {
  Devices job(ranks);
  std::vector<size_t> all;
  for (size_t r = 0; r < ranks; ++r) all.push_back(r);
  for (uint32_t i = 0; i < 750; ++i) {
    job.SpendAll(kMsec);
    job.Meet(1, all, i % 500);
  }
  const std::clock_t before = std::clock();
  EXPECT_EQ(job.Tell().collectives, 750u);
  return static_cast<double>(std::clock() - before);
}

// Hundreds of kinds of collectives, as kernels have names: each rank is not compared
// with each other one for each of them. That took 16 times as long for four times as
// many ranks.
TEST(Identified, TimeForManyKindsGrowsWithRanksNotWithPairsOfThem) {
  EXPECT_LT(MedianRatio([] { return ProcessorTimeOfManyKinds(256); },
                        [] { return ProcessorTimeOfManyKinds(64); }),
            9);
}

// By time the first wait of one rank would be matched with the second of the other.
TEST(Identified, WaitsAreMatchedByTheirIdentity) {
  Devices job(2);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    if (i % 10 == 9) job.Spend(1, 50 * kMsec, kNap);
    job.Meet(1, {0, 1});
  }
  job.ranks[0].waits.erase(job.ranks[0].waits.begin());  // its window began later
  const Story story = job.Tell();
  EXPECT_EQ(story.collectives, 49u);
  EXPECT_EQ(story.unmatched_ns, kMsec);
  EXPECT_EQ(story.ranks[1].causes.at(0).cost_ns, 250 * kMsec);
}

TEST(Identified, WaitsThatFollowEachOtherAreNotOne) {
  Devices job(2);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    job.Meet(1, {0, 1});
    job.Meet(1, {0, 1});
  }
  EXPECT_EQ(job.Tell().collectives, 100u);
}

TEST(Identified, NothingIsToldOfWhatIsNotWhole) {
  for (int trouble = 0; trouble < 5; ++trouble) {
    Devices job(3);
    for (int i = 0; i < 50; ++i) {
      job.Step();
      job.SpendAll(10 * kMsec);
      job.Spend(1, 50 * kMsec, kNap);
      job.Meet(1, {0, 1, 2});
    }
    for (size_t i = 0; i < 50; ++i) {
      Stretch& wait = job.ranks[2].waits[i];
      if (trouble == 1) wait.collective += 100'000;  // one was not seen
      if (trouble == 2) wait.members = 2;            // they contradict each other
      if (trouble == 4 && i % 2 == 1) {              // one rank comes twice
        wait.collective = job.ranks[2].waits[i - 1].collective;
      }
    }
    if (trouble == 3) {  // a communicator of one rank
      for (size_t r = 0; r < 3; ++r) {
        for (Stretch& wait : job.ranks[r].waits) {
          wait.members = 1;
          wait.collective = 1000 * wait.collective + r;
        }
      }
    }
    const Story story = job.Tell();
    EXPECT_EQ(story.collectives, trouble == 0 ? 50u : 0u) << trouble;
    EXPECT_EQ(Causes(story), trouble == 0 ? 1u : 0u) << trouble;
    EXPECT_EQ(story.unmatched_ns == 0, trouble == 0);
  }
}

TEST(Identified, WhatOverlapsIsLeftAlone) {
  Devices job(2);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    if (i % 10 == 9) job.Spend(1, 50 * kMsec, kNap);
    job.Meet(1, {0, 1});
  }
  Stretch within = job.ranks[0].waits[20];
  within.start_ns += 1000;
  within.collective = 1'000'000;
  job.ranks[0].waits.insert(job.ranks[0].waits.begin() + 21, within);
  const Story story = job.Tell();
  EXPECT_EQ(story.collectives, 50u);
  EXPECT_EQ(story.unmatched_ns, within.end_ns - within.start_ns);
  EXPECT_EQ(story.ranks[1].causes.at(0).cost_ns, 250 * kMsec);
}

// The whole time since the last collective of the communicator must be known.
TEST(Identified, NothingIsToldWhereAWaitMayHaveBeen) {
  for (const uint32_t what : {kKernel, 0u}) {
    Devices job(2);
    for (int i = 0; i < 50; ++i) {
      job.Step();
      job.SpendAll(10 * kMsec);
      if (i % 5 == 4) {
        job.Spend(1, 1000, what);
        job.Spend(1, 50 * kMsec, kNap);
      }
      job.Meet(1, {0, 1});
    }
    EXPECT_EQ(Causes(job.Tell()), what == 0 ? 0u : 1u);
    EXPECT_EQ(job.Tell().unexplained_ns == 0, what != 0);
  }
}

// Most of the time both nap where nobody knows what else they did: that is no habit.
TEST(Identified, WhatMayHaveBeenAWaitMakesNoHabit) {
  Devices job(2);
  for (int i = 0; i < 100; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    if (i % 10 < 7) {
      job.SpendAll(50 * kMsec, kNap);
      job.SpendAll(kMsec, 0);
    } else if (i % 10 == 9) {
      job.Spend(1, 50 * kMsec, kNap);
    }
    job.Meet(1, {0, 1});
  }
  const Story story = job.Tell();
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 500 * kMsec);
}

// Rank 1 always naps. Those of the other communicator do so, too.
TEST(Identified, HabitsAreComparedAmongThoseWhoShareThem) {
  Devices job(5);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    for (const size_t r : {1, 2, 3, 4}) job.Spend(r, 20 * kMsec, kNap);
    job.Meet(1, {0, 1});
    job.Meet(2, {2, 3, 4});
  }
  const Story story = job.Tell();
  EXPECT_EQ(Causes(story), 1u);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 49 * 20 * kMsec);
}

// Collectives of one size after different work, of which one rank has a little more.
TEST(Identified, WhatAllDoBeforeOneOfThemIsNoCause) {
  Devices job(3);
  for (int i = 0; i < 60; ++i) {
    job.Step();
    for (int part = 0; part < 3; ++part) {
      job.SpendAll(30 * kMsec, static_cast<uint32_t>(20 + part));
      if (i % 12 == 7)
        job.now_ns[static_cast<size_t>(part)] += 3 * kMsec;  // nobody knows
      job.Meet(1, {0, 1, 2});
    }
  }
  EXPECT_EQ(Causes(job.Tell()), 0u);
}

TEST(Identified, TimesHaveErrorsOfTheirOwn) {
  const HostClock exact;
  const auto other = HostClock::From({{1000 * kMsec, -700, 700}});
  ASSERT_TRUE(other);
  const uint64_t then = other->ToCommon(1000 * kMsec);
  Rank a, b;
  EXPECT_EQ(ErrorBetween(a, b, then), 0u);
  a.times_error_ns = 5000;
  b.times_error_ns = 3000;
  EXPECT_EQ(ErrorBetween(a, b, then), 8000u);
  a.clock = b.clock = &*other;
  EXPECT_EQ(ErrorBetween(a, b, then), 8000u);
  a.clock = &exact;
  const uint64_t clock_ns = other->ErrorAt(then);
  EXPECT_GE(clock_ns, 700u);
  EXPECT_EQ(ErrorBetween(a, b, then), 8000u + clock_ns);

  Devices job(2);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(kMsec);
    if (i % 10 == 9) job.Spend(1, 2 * kMsec, kNap);
    job.Meet(1, {0, 1});
  }
  for (const uint64_t error_ns : {999'999u, 1'000'000u}) {
    for (Rank& rank : job.ranks) rank.times_error_ns = error_ns;
    EXPECT_EQ(Causes(job.Tell()), error_ns < kMsec ? 1u : 0u);
  }
}

// Four ranks: tensors are split among {0, 1} and {2, 3}, {1, 2} are stages of a
// pipeline, {2, 4, 5} share gradients.
struct Chained : Devices {
  Chained() : Devices(6) {}
  void Run(int steps, int period, uint64_t nap_ns) {
    for (int i = 0; i < steps; ++i) {
      Step();
      SpendAll(10 * kMsec);
      if (i % period == period - 1) Spend(0, nap_ns, kNap);
      Meet(1, {0, 1});
      SpendAll(5 * kMsec);
      Meet(2, {1, 2});
      SpendAll(5 * kMsec);
      Meet(3, {2, 3});
      SpendAll(5 * kMsec);
      Meet(4, {2, 4, 5});
      // All begin the next step together.
      Meet(5, {0, 1, 2, 3, 4, 5});
    }
  }
};

TEST(Identified, WhoWasKeptWaitingElsewhereIsNotCharged) {
  Chained job;
  job.Run(50, 10, 60 * kMsec);
  const Story story = job.Tell();
  EXPECT_EQ(Causes(story), 1u);
  ASSERT_EQ(story.ranks[0].causes.size(), 1u);
  const Cause& cause = story.ranks[0].causes[0];
  EXPECT_EQ(cause.what, kNap);
  EXPECT_EQ(cause.count, 5u);
  EXPECT_EQ(cause.steps, 5u);
  EXPECT_EQ(cause.late_ns, 300 * kMsec) << "it was late once a step";
  EXPECT_EQ(story.ranks[0].late_steps, 5u);
  // Of ranks 1 to 5, with the 1, 2 and 3 ms that they always wait: that is below a
  // tenth.
  EXPECT_EQ(cause.cost_ns, 5 * (60 + 61 + 62 + 2 * 63) * kMsec);
}

TEST(Identified, AChainThatIsNotKnownIsNobodysFault) {
  for (const bool unseen : {false, true}) {
    Chained job;
    job.Run(50, 10, 60 * kMsec);
    for (Stretch& wait : job.ranks[2].waits) {
      if (wait.group != 2) continue;
      if (unseen) {  // the other end of the pipeline was not traced
        wait.collective += 1'000'000;
      } else {  // or nobody knows what the stage did since
        job.ranks[2].spent.push_back({wait.end_ns, wait.end_ns + 10, 0});
      }
    }
    std::sort(
        job.ranks[2].spent.begin(), job.ranks[2].spent.end(),
        [](const Stretch& a, const Stretch& b) { return a.start_ns < b.start_ns; });
    const Story story = job.Tell();
    EXPECT_EQ(Causes(story), 1u);
    // Of rank 1 alone.
    ASSERT_EQ(story.ranks[0].causes.size(), 1u);
    EXPECT_EQ(story.ranks[0].causes[0].cost_ns, 300 * kMsec);
    EXPECT_GE(story.unexplained_ns, 3 * 300 * kMsec);
  }
}

// Rank 1 always comes 5 ms after rank 0, also where that one made both late.
TEST(Identified, WhoMadeTheLastButOneLateAsWellIsNotChargedForTheRest) {
  Devices job(3);
  for (int i = 0; i < 50; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    if (i % 10 == 9) job.Spend(0, 60 * kMsec, kNap);
    job.Meet(1, {0, 1});
    job.Spend(1, 5 * kMsec, kKernel);
    job.Meet(2, {0, 1, 2});
  }
  const Story story = job.Tell();
  ASSERT_EQ(story.ranks[0].causes.size(), 1u);
  EXPECT_EQ(story.ranks[0].causes[0].cost_ns, 300 * kMsec) << "of rank 1 alone";
}

// Ranks 1 and 2 come late at once to their communicator, and only of one it is known
// why.
TEST(Identified, WhereTwoMayHaveComeLastThereIsNoChain) {
  for (const uint64_t error_ns : {0u, 5000u}) {
    Devices job(4);
    for (int i = 0; i < 50; ++i) {
      job.Step();
      job.SpendAll(10 * kMsec);
      if (i % 10 == 9) {
        job.Spend(0, 60 * kMsec, kNap);
        job.now_ns[2] += 61 * kMsec - 1000;
      }
      job.Meet(1, {0, 1});
      job.Meet(2, {1, 2});
      job.Meet(3, {2, 3});
      job.Meet(4, {0, 1, 2, 3});
    }
    for (Rank& rank : job.ranks) rank.times_error_ns = error_ns;
    const Story story = job.Tell();
    EXPECT_EQ(Causes(story), 1u);
    EXPECT_EQ(story.ranks[0].causes.at(0).cost_ns > 301 * kMsec, error_ns == 0);
  }
}

// A rank of a group of two is the last one half of the time, by chance.
TEST(Identified, ChanceIsThatOfTheMembers) {
  Devices job(8);
  for (int i = 0; i < 80; ++i) {
    job.Step();
    job.SpendAll(10 * kMsec);
    job.Spend(i % 2 == 0 ? 0 : 1, 2 * kMsec, kKernel);
    job.Meet(1, {0, 1});
    job.Meet(2, {2, 3, 4, 5, 6, 7});
  }
  EXPECT_EQ(Causes(job.Tell()), 0u);
}

// Where the caller does not tell communicators apart.
TEST(Identified, WithoutCommunicatorsThereIsNoChain) {
  Chained job;
  job.Run(50, 10, 60 * kMsec);
  for (Rank& rank : job.ranks) {
    for (Stretch& wait : rank.waits) wait.group = 0;
  }
  const Story story = job.Tell();
  EXPECT_EQ(Causes(story), 1u);
  EXPECT_EQ(story.ranks[0].causes.at(0).cost_ns, 300 * kMsec);
}

// What came of one nap in several communicators makes no habit of it.
TEST(Identified, AOneOffIsToldOnlyIfItCostsMuch) {
  for (const bool much : {false, true}) {
    Chained job;
    job.Run(100, 60, (much ? 300 : 10) * kMsec);
    EXPECT_EQ(Causes(job.Tell()), much ? 1u : 0u);
  }
}

}  // namespace
}  // namespace lull::ranks
