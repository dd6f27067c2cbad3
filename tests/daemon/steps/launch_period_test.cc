#include "daemon/steps/launch_period.h"

#include <gtest/gtest.h>

#include <random>

namespace lull::steps {
namespace {

// A thread that calls a microsecond apart, and pauses for a millisecond between steps.
class Program {
 public:
  void Call(uint64_t key) {
    if (auto step = period_.Add(key, now_ns_)) found_.push_back(*step);
    now_ns_ += 1'000;
  }
  // Returns when the step began.
  uint64_t Step(const std::vector<uint64_t>& keys) {
    now_ns_ += 1'000'000;
    uint64_t start = now_ns_;
    for (uint64_t key : keys) Call(key);
    return start;
  }

  LaunchPeriod period_;
  std::vector<LaunchPeriod::Found> found_;
  uint64_t now_ns_ = 0;
};

std::vector<uint64_t> Network(size_t layers) {
  std::vector<uint64_t> keys = {1000};  // the copy of the batch
  for (size_t i = 0; i < layers; ++i) keys.push_back(i % 7);
  for (size_t i = layers; i > 0; --i) keys.push_back(100 + i % 5);
  keys.push_back(2000);
  return keys;
}

TEST(LaunchPeriod, FindsTheStepsOfATrainingLoop) {
  for (size_t layers : {1u, 10u, 300u, 4000u}) {
    Program program;
    std::vector<uint64_t> starts;
    const size_t calls = 2 * layers + 2;
    for (size_t step = 0; step < 20 + 10'000 / calls; ++step) {
      starts.push_back(program.Step(Network(layers)));
    }
    ASSERT_FALSE(program.found_.empty()) << layers;
    EXPECT_EQ(program.period_.length(), calls);
    size_t first = static_cast<size_t>(
        std::find(starts.begin(), starts.end(), program.found_[0].start_ns) -
        starts.begin());
    for (size_t i = 0; i < program.found_.size(); ++i) {
      ASSERT_LT(first + i + 1, starts.size());
      EXPECT_EQ(program.found_[i].start_ns, starts[first + i]);
      EXPECT_EQ(program.found_[i].end_ns, starts[first + i + 1]);
    }
    EXPECT_EQ(first + program.found_.size() + 1, starts.size());
  }
}

TEST(LaunchPeriod, FindsNoneInRandomCalls) {
  Program program;
  std::mt19937_64 random(1);
  for (int i = 0; i < 200'000; ++i) program.Call(random() % 50);
  EXPECT_TRUE(program.found_.empty());
}

TEST(LaunchPeriod, FindsNoneInOneCallOverAndOver) {
  Program program;
  for (int i = 0; i < 200'000; ++i) program.Call(5);
  EXPECT_TRUE(program.found_.empty());
}

TEST(LaunchPeriod, LosesOnlyTheStepThatIsInterrupted) {
  Program program;
  for (int step = 0; step < 200; ++step) program.Step(Network(20));
  size_t before = program.found_.size();
  for (int step = 0; step < 100; ++step) {
    if (step == 50) program.Step({77, 78, 79});  // a validation
    program.Step(Network(20));
  }
  // The step before the interruption never sees its successor begin.
  EXPECT_EQ(program.found_.size(), before + 99);
}

TEST(LaunchPeriod, LooksForAnotherOneWhenTheProgramDoesSomethingElse) {
  Program program;
  for (int step = 0; step < 200; ++step) program.Step(Network(20));
  ASSERT_FALSE(program.found_.empty());
  program.found_.clear();
  for (int step = 0; step < 4000; ++step) program.Step({1, 2, 3, 1, 2, 4});
  EXPECT_EQ(program.period_.length(), 6u);
  EXPECT_GT(program.found_.size(), 2000u);
}

TEST(LaunchPeriod, GetsIntoStepAgainInARunOfEqualCalls) {
  std::vector<uint64_t> keys(400, 9);
  keys.push_back(1);
  keys.push_back(2);
  Program program;
  for (int step = 0; step < 60; ++step) program.Step(keys);
  size_t before = program.found_.size();
  ASSERT_GT(before, 0u);
  program.Step({3});
  for (int step = 0; step < 20; ++step) program.Step(keys);
  EXPECT_GE(program.found_.size(), before + 18);
}

}  // namespace
}  // namespace lull::steps
