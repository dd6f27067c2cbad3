// The engine against the rules taken literally, on random workloads: every part of
// every gap, to the nanosecond.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/daemon/blame/story.h"
#include "tests/trials.h"

namespace lull::blame {
namespace {

constexpr uint64_t kSeeds = 1000, kPerCase = 100;
constexpr uint64_t kTried = Trials(kPerCase, uint64_t{20});

// Names the first difference: lists of hundreds of parts say little.
template <typename T>
void ExpectSame(const std::vector<T>& told, const std::vector<T>& truth) {
  auto [a, b] = std::mismatch(told.begin(), told.end(), truth.begin(), truth.end());
  if (a != told.end()) ADD_FAILURE() << "told:  " << *a;
  if (b != truth.end()) ADD_FAILURE() << "truth: " << *b;
}

void ExpectSame(const Telling& told, const Telling& truth) {
  ExpectSame(told.idle, truth.idle);
  ExpectSame(told.syncs, truth.syncs);
  ExpectSame(told.submissions, truth.submissions);
  EXPECT_EQ(told.coverage, truth.coverage);
}

class GroundTruth : public ::testing::TestWithParam<uint64_t> {
 protected:
  // A hundred seeds a test case at most, so that a failure names few of them.
  template <typename Check>
  void ForEachSeed(Check check) {
    for (uint64_t seed = GetParam(); seed < GetParam() + kTried; ++seed) {
      SCOPED_TRACE("seed " + std::to_string(seed));
      check(seed, RandomStory(seed));
      if (HasFailure()) return;
    }
  }
};

TEST_P(GroundTruth, IsWhatTheEngineTells) {
  ForEachSeed([](uint64_t, const Story& story) {
    Counters counters;
    ExpectSame(TellAtOnce(story, &counters), JudgeByTheRules(story));
    EXPECT_EQ(counters.late_operations, 0u);
    EXPECT_EQ(counters.late_host_events, 0u);
  });
}

TEST_P(GroundTruth, DependsNeitherOnTheOrderOfArrivalNorOnTheBatches) {
  ForEachSeed([](uint64_t seed, const Story& story) {
    Telling truth = JudgeByTheRules(story);
    for (uint64_t order = 0; order < 3; ++order) {
      Counters counters;
      int out_of_step = 0;
      ExpectSame(TellInPieces(story, seed * 3 + order, &counters, &out_of_step), truth);
      EXPECT_EQ(out_of_step, 0);
      if (HasFailure()) return;
      EXPECT_EQ(counters.late_operations, 0u);
      EXPECT_EQ(counters.late_host_events, 0u);
      EXPECT_EQ(counters.overflows, 0u);
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Seeds, GroundTruth,
                         ::testing::Range(uint64_t{0}, kSeeds, kPerCase),
                         [](const auto& info) {
                           return "From" + std::to_string(info.param);
                         });

}  // namespace
}  // namespace lull::blame
