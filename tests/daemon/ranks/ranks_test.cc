#include "daemon/ranks/ranks.h"

#include <gtest/gtest.h>

namespace lull::ranks {
namespace {

constexpr uint64_t kMs = 1'000'000;
constexpr uint32_t kBackward = 12, kSleep = 8, kGc = 9;

// Two ranks, a step of 10 ms of code each: the second one may spend more.
struct TwoRanks {
  std::vector<Rank> ranks = std::vector<Rank>(2);
  uint64_t now_ns = 1000 * kMs;

  // What rank 1 does beyond its code; `what` 0 is code.
  void Step(uint64_t more_ns = 0, uint32_t what = kSleep, uint64_t copies_ns = 0) {
    for (Rank& rank : ranks) rank.steps.push_back(now_ns);
    if (more_ns > 0 && what != 0) {
      ranks[1].spent.push_back({now_ns + kMs, now_ns + kMs + more_ns, what});
    }
    const uint64_t first = now_ns + 10 * kMs, last = first + more_ns;
    const uint64_t end = last + kMs;
    for (size_t r = 0; r < 2; ++r) {
      const uint64_t from = r == 0 ? first : last;
      if (copies_ns == 0) {
        ranks[r].waits.push_back({from, end, kBackward});
      } else {  // two buckets, of which rank 1 need not wait for the first
        if (r == 0) ranks[r].waits.push_back({from, last - copies_ns, kBackward});
        ranks[r].waits.push_back({last, end, kBackward});
      }
    }
    now_ns = end + 2 * kMs;  // the optimizer
  }
};

TEST(Ranks, NamesTheLateOneAndItsCause) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0);
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 100u);
  EXPECT_EQ(story.steps, 100u);
  EXPECT_EQ(story.ranks[0].waited_ns, 500 * kMs);
  EXPECT_EQ(story.ranks[1].waited_ns, 0u);
  EXPECT_EQ(story.ranks[1].late_steps, 10u);
  EXPECT_TRUE(story.ranks[0].causes.empty());
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  const Cause& cause = story.ranks[1].causes[0];
  EXPECT_TRUE(cause.recorded);
  EXPECT_EQ(cause.what, kSleep);
  EXPECT_EQ(cause.count, 10u);
  EXPECT_EQ(cause.late_ns, 500 * kMs);
  EXPECT_EQ(cause.cost_ns, 500 * kMs);
  ASSERT_EQ(story.late.size(), 10u);
  for (const LateTime& late : story.late) {
    EXPECT_EQ(late.rank, 1u);
    EXPECT_EQ(late.cost_ns, 50 * kMs);
  }
  EXPECT_EQ(story.late[0].came_ns, (1000 + 9 * 13 + 60) * kMs) << "in the tenth step";
  EXPECT_EQ(story.unexplained_ns, 0u);
  EXPECT_EQ(story.unmatched_ns, 0u);
}

TEST(Ranks, CountsCollectivesWhereNoStepsAreKnown) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0);
  EXPECT_FALSE(WhoWaitedForWhom(job.ranks).no_steps);
  for (Rank& rank : job.ranks) rank.steps.clear();
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_TRUE(story.no_steps);
  EXPECT_EQ(story.steps, 100u);
  EXPECT_EQ(story.ranks[1].late_steps, 10u);
}

TEST(Ranks, NamesWhatARankDoesInEveryStepAndTheOthersDoNot) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(5 * kMs);
  const Story story = WhoWaitedForWhom(job.ranks);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].what, kSleep);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 495 * kMs) << "before the first: unknown";
  EXPECT_EQ(story.unexplained_ns, 5 * kMs);
}

// Its code took the rest of that time.
TEST(Ranks, ChargesACauseWithNoMoreThanItExplains) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) {
    const bool late = i % 10 == 9;
    if (late) {
      job.ranks[1].spent.push_back(
          {job.now_ns + kMs, job.now_ns + kMs + 26 * kMs, kSleep});
    }
    job.Step(late ? 50 * kMs : 0, 0);
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].what, kSleep);
  EXPECT_EQ(story.ranks[1].causes[0].late_ns, 260 * kMs);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 260 * kMs);
  EXPECT_EQ(story.unexplained_ns, 240 * kMs);
}

// After a sync idle time counts as the sync's for as long as that had blocked; the rank
// ran its code all the same. That is the sync's fault as far as it blocked for longer
// than it usually does.
TEST(Ranks, ChargesCodeWithTheTimeBehindASyncThatBlockedAsEver) {
  for (const uint64_t blocked_ns : {30 * kMs, 40 * kMs, 70 * kMs}) {
    TwoRanks job;
    for (int i = 0; i < 100; ++i) {
      const bool late = i % 4 == 3;
      for (size_t r = 0; r < 2; ++r) {
        const uint64_t more_ns = r == 1 && late ? 30 * kMs : 0;
        job.ranks[r].spent.push_back(
            {job.now_ns + kMs, job.now_ns + 2 * kMs + more_ns, kSleep});
        job.ranks[r].spent.back().beside_code = true;
        job.ranks[r].spent.back().blocked_ns = more_ns > 0 ? blocked_ns : 30 * kMs;
      }
      job.Step(late ? 50 * kMs : 0, 0);
    }
    const Story story = WhoWaitedForWhom(job.ranks);
    ASSERT_EQ(story.ranks[1].causes.size(), 1u);
    const Cause& cause = story.ranks[1].causes[0];
    EXPECT_EQ(cause.recorded, blocked_ns == 70 * kMs) << "30 of 50 ms are the sync's";
    EXPECT_EQ(cause.cost_ns, blocked_ns == 30 * kMs   ? 25 * 50 * kMs
                             : blocked_ns == 40 * kMs ? 25 * 40 * kMs
                                                      : 25 * 30 * kMs);
  }
}

TEST(Ranks, ForgivesWhatAllDo) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) {
    // Both sleep equally, and rank 1 is late by 40 us: less than 2 % of a step.
    job.ranks[0].spent.push_back({job.now_ns + kMs, job.now_ns + 6 * kMs, kSleep});
    job.ranks[1].spent.push_back({job.now_ns + kMs, job.now_ns + 6 * kMs, kSleep});
    job.Step(40'000, 0);
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_TRUE(story.ranks[0].causes.empty() && story.ranks[1].causes.empty());
  EXPECT_EQ(story.unexplained_ns, story.ranks[0].waited_ns);
}

// What all do takes longer now and then, on any rank; or always, on one.
TEST(Ranks, NamesWhatAllDoWhereItTakesLongerOnOneRankAlone) {
  for (const bool one_rank : {false, true}) {
    TwoRanks job;
    for (int i = 0; i < 200; ++i) {
      const size_t late = one_rank ? 1 : static_cast<size_t>(i / 3 % 2);
      const uint64_t more = i % 3 == 0 ? 8 * kMs : 0;
      for (size_t r = 0; r < 2; ++r) {
        const uint64_t end = job.now_ns + 6 * kMs + (r == late ? more : 0);
        job.ranks[r].spent.push_back({job.now_ns + kMs, end, kSleep});
      }
      job.Step(more, 0);
      if (late == 0) std::swap(job.ranks[0].waits.back(), job.ranks[1].waits.back());
    }
    const Story story = WhoWaitedForWhom(job.ranks);
    EXPECT_TRUE(story.ranks[0].causes.empty());
    ASSERT_EQ(story.ranks[1].causes.size(), one_rank ? 1u : 0u);
    if (!one_rank) continue;
    EXPECT_TRUE(story.ranks[1].causes[0].recorded);
    EXPECT_EQ(story.ranks[1].causes[0].what, kSleep);
    EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 66 * 8 * kMs);
  }
}

TEST(Ranks, NamesCodeWithTheLineThatWasSeenThere) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) {
    const bool late = i % 3 == 2;
    if (late)
      job.ranks[1].looks.push_back({job.now_ns + 2 * kMs, i % 4 == 0 ? 5u : 7u});
    job.Step(late ? 20 * kMs : 0, 0);
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_FALSE(story.ranks[1].causes[0].recorded);
  EXPECT_EQ(story.ranks[1].causes[0].what, 7u);
  EXPECT_EQ(story.ranks[1].causes[0].late_ns, 33 * 20 * kMs);
}

TEST(Ranks, TakesFewLateStepsWithoutARecordedCauseForChance) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 20 == 19 ? 20 * kMs : 0, 0);
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_TRUE(story.ranks[1].causes.empty());
  EXPECT_EQ(story.ranks[0].waited_ns, 100 * kMs);
  EXPECT_EQ(story.unexplained_ns, 100 * kMs);
}

TEST(Ranks, TellsAOneOffOnlyIfItCostsMuch) {
  for (const bool much : {false, true}) {
    TwoRanks job;
    for (int i = 0; i < 100; ++i) job.Step(i == 50 ? (much ? 100 : 5) * kMs : 0, kGc);
    const Story story = WhoWaitedForWhom(job.ranks);
    EXPECT_EQ(story.ranks[1].causes.size(), much ? 1u : 0u);
  }
}

TEST(Ranks, TakesTheWaitsForAllBucketsOfAStepForOne) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0, kSleep, 2 * kMs);
  // A step without a late one: rank 0 waits 0 or less for the first bucket.
  for (auto& wait : job.ranks[0].waits) {
    wait.end_ns = std::max(wait.start_ns, wait.end_ns);
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 10 * 48 * kMs) << "it copied meanwhile";
  EXPECT_EQ(story.unmatched_ns, 0u);
}

TEST(Ranks, AccusesNobodyForWaitsThatNotAllTookPartIn) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(50 * kMs);
  std::vector<Stretch> all = job.ranks[1].waits;
  job.ranks[1].waits.assign(all.begin() + 50, all.end());
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 50u);
  EXPECT_EQ(story.unmatched_ns, 50 * 51 * kMs);
  EXPECT_EQ(story.ranks[0].waited_ns, 50 * 50 * kMs);
}

// The last rank often finds all done, and no wait of it is recorded.
TEST(Ranks, NamesALateRankOfWhichNoWaitIsSeen) {
  for (const uint32_t what : {kSleep, 0u}) {
    TwoRanks job;
    for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0, what);
    std::vector<Stretch>& waits = job.ranks[1].waits;
    for (size_t i = 9; i < 90; i += 20) waits[i].what = 0;
    std::erase_if(waits, [](const Stretch& wait) { return wait.what == 0; });
    const Story story = WhoWaitedForWhom(job.ranks);
    EXPECT_EQ(story.collectives, 100u);
    EXPECT_EQ(story.unmatched_ns, 0u);
    EXPECT_EQ(story.ranks[0].waited_ns, 500 * kMs) << "less the usual transfer";
    if (what == 0) {  // its code: when it came is not known well enough
      EXPECT_TRUE(story.ranks[1].causes.empty());
      EXPECT_EQ(story.unexplained_ns, 500 * kMs);
    } else {
      ASSERT_EQ(story.ranks[1].causes.size(), 1u);
      EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 500 * kMs);
    }
  }
}

// Its collective was over for the other one when it began to wait.
TEST(Ranks, TakesAWaitThatBeginsWhenTheOthersHaveEndedForOneOfTheSameCollective) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0);
  for (size_t i = 9; i < 100; i += 20) {
    Stretch& wait = job.ranks[1].waits[i];
    wait.start_ns = wait.end_ns + 1;
    wait.end_ns += kMs / 2;
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 100u);
  EXPECT_EQ(story.unmatched_ns, 0u);
  EXPECT_EQ(story.ranks[1].waited_ns, 0u);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].cost_ns, 500 * kMs);
}

TEST(Ranks, AccusesNobodyWhereTwoHaveNoWait) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(i % 10 == 9 ? 50 * kMs : 0);
  for (size_t i = 9; i < 100; i += 10) job.ranks[1].waits[i].what = 0;
  std::erase_if(job.ranks[1].waits, [](const Stretch& wait) { return wait.what == 0; });
  job.ranks.push_back(job.ranks[1]);
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 90u);
  EXPECT_EQ(story.unmatched_ns, 10 * 51 * kMs);
  EXPECT_TRUE(story.ranks[1].causes.empty() && story.ranks[2].causes.empty());
}

TEST(Ranks, AccusesNobodyOfTwoThatCameLateTogether) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) job.Step(50 * kMs);
  job.ranks.push_back(job.ranks[1]);
  const Story story = WhoWaitedForWhom(job.ranks);
  for (const RankStory& rank : story.ranks) EXPECT_TRUE(rank.causes.empty());
  EXPECT_EQ(story.unexplained_ns, 100 * 50 * kMs);
}

TEST(Ranks, SplitsWhatNestsAmongTheInnermost) {
  TwoRanks job;
  for (int i = 0; i < 30; ++i) {
    const bool late = i % 5 == 4;
    if (late) {  // most of a data wait is a collection
      job.ranks[1].spent.push_back({job.now_ns + kMs, job.now_ns + 41 * kMs, kSleep});
      job.ranks[1].spent.push_back({job.now_ns + 6 * kMs, job.now_ns + 40 * kMs, kGc});
    }
    job.Step(late ? 40 * kMs : 0, 0);
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  ASSERT_EQ(story.ranks[1].causes.size(), 1u);
  EXPECT_EQ(story.ranks[1].causes[0].what, kGc);
}

// Rank 0 waits for a transfer of 20 ms that both have launched; rank 1 sleeps
// meanwhile, and waits for it later: its wait is too short to be seen.
TEST(Ranks, AccusesNobodyForASleepThatWentOnWhenTheCollectiveWasOver) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) {
    const uint64_t began = job.now_ns;
    job.Step();
    if (i % 10 != 9) continue;
    job.ranks[1].waits.pop_back();
    job.ranks[0].waits.back().end_ns += 20 * kMs;
    job.now_ns += 60 * kMs;
    job.ranks[1].spent.push_back({began + kMs, began + 60 * kMs, kSleep});
    // A collection within does not end the sleep.
    if (i % 20 == 9)
      job.ranks[1].spent.push_back({began + 2 * kMs, began + 3 * kMs, kGc});
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_TRUE(story.ranks[0].causes.empty() && story.ranks[1].causes.empty());
}

// Of no collective all waits were seen: nobody knows how long a transfer takes.
TEST(Ranks, AccusesNobodyWhereNoTransferIsKnown) {
  TwoRanks job;
  job.Step();
  for (int i = 0; i < 50; ++i) job.Step(5 * kMs);
  std::vector<Stretch>& waits = job.ranks[1].waits;
  waits = {{1000 * kMs, 1001 * kMs, kBackward},
           {job.now_ns, job.now_ns + kMs, kBackward}};
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 0u);
  EXPECT_EQ(story.ranks[0].waited_ns, 0u);
  EXPECT_TRUE(story.ranks[1].causes.empty());
}

// Rank 0 is late, and what rank 1 waited for then is not known.
TEST(Ranks, AccusesNobodyForAWaitThatMayHaveBeenForOtherRanks) {
  TwoRanks job;
  for (int i = 0; i < 100; ++i) {
    job.Step();
    if (i % 10 != 9) continue;
    for (Rank& rank : job.ranks) rank.waits.back().end_ns += 50 * kMs;
    job.ranks[0].waits.back().start_ns += 40 * kMs;
    job.now_ns += 50 * kMs;
    Stretch& wait = job.ranks[1].waits.back();
    if (i % 20 == 9) {
      job.ranks[1].spent.push_back({wait.start_ns, wait.end_ns, 0});
      job.ranks[1].waits.pop_back();
    } else {  // it waits for two buckets, and the first one is not known
      job.ranks[1].spent.push_back({wait.start_ns, wait.end_ns - 2 * kMs, 0});
      wait.start_ns = wait.end_ns - kMs;
    }
  }
  const Story story = WhoWaitedForWhom(job.ranks);
  EXPECT_EQ(story.collectives, 95u);
  EXPECT_EQ(story.unmatched_ns, 5 * 11 * kMs);
  EXPECT_TRUE(story.ranks[0].causes.empty() && story.ranks[1].causes.empty());
}

TEST(Ranks, HasNothingToSayOfNothing) {
  EXPECT_EQ(WhoWaitedForWhom(std::vector<Rank>(2)).collectives, 0u);
  TwoRanks job;
  job.Step(50 * kMs);
  EXPECT_EQ(WhoWaitedForWhom(job.ranks).collectives, 1u);
  EXPECT_TRUE(WhoWaitedForWhom(job.ranks).ranks[1].causes.empty());
}

}  // namespace
}  // namespace lull::ranks
