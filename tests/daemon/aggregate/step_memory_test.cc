#include "daemon/aggregate/step_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

namespace lull::aggregate {
namespace {

constexpr uint64_t kForever = std::numeric_limits<uint64_t>::max();
using Live = std::vector<std::pair<uint32_t, int64_t>>;

TEST(StepMemory, SaysWhatIsLiveAtTheEndOfEachStep) {
  StepMemory memory;
  memory.Change(10, 1, 100);
  memory.EndStep(0, 20);
  memory.Change(25, 2, 7);
  memory.Change(30, 1, -60);
  memory.EndStep(1, 30);
  memory.Advance(100);
  auto samples = memory.TakeSamples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_EQ(samples[0].live, (Live{{1, 100}}));
  EXPECT_EQ(samples[1].step, 1u);
  EXPECT_EQ(samples[1].end_ns, 30u);
  EXPECT_EQ(samples[1].live, (Live{{1, 40}, {2, 7}}));
  EXPECT_TRUE(memory.TakeSamples().empty());
}

TEST(StepMemory, WaitsUntilAllHasComeInAndPutsItInOrder) {
  StepMemory memory;
  memory.EndStep(0, 50);
  memory.Change(60, 1, 1000);
  memory.Advance(50);  // a change at 49 may still come
  EXPECT_TRUE(memory.TakeSamples().empty());
  memory.Change(49, 1, 5);
  memory.Advance(51);
  auto samples = memory.TakeSamples();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].live, (Live{{1, 5}}));
}

TEST(StepMemory, CountsWhatComesTooLateFromThenOn) {
  StepMemory memory;
  memory.EndStep(0, 50);
  memory.Advance(100);
  memory.Change(40, 1, 9);
  memory.EndStep(1, 120);
  memory.Advance(kForever);
  auto samples = memory.TakeSamples();
  ASSERT_EQ(samples.size(), 2u);
  EXPECT_TRUE(samples[0].live.empty());
  EXPECT_EQ(samples[1].live, (Live{{1, 9}}));
}

TEST(StepMemory, EqualsAReplayInTheOrderOfTimeWhateverTheOrderOfArrival) {
  for (unsigned seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    struct Change {
      uint64_t time;
      uint32_t series;
      int64_t bytes;
    };
    std::vector<Change> changes;
    std::vector<uint64_t> ends;
    for (uint64_t time = 1; time <= 3000; ++time) {
      if (random() % 5 == 0) {
        ends.push_back(time);
      } else {
        changes.push_back({time, static_cast<uint32_t>(1 + random() % 3),
                           static_cast<int64_t>(random() % 1000) - 400});
      }
    }
    StepMemory memory;
    std::vector<StepMemory::Sample> samples;
    for (uint64_t from = 0; from < 3000; from += 200) {  // batch by batch
      std::vector<Change> batch;
      for (const Change& change : changes) {
        if (change.time > from && change.time <= from + 200) batch.push_back(change);
      }
      std::shuffle(batch.begin(), batch.end(), random);
      for (size_t i = 0; i < ends.size(); ++i) {
        if (ends[i] > from && ends[i] <= from + 200) memory.EndStep(i, ends[i]);
      }
      for (const Change& change : batch) {
        memory.Change(change.time, change.series, change.bytes);
      }
      memory.Advance(from + 1 + random() % 200);
      for (auto& sample : memory.TakeSamples()) samples.push_back(std::move(sample));
    }
    memory.Advance(kForever);
    for (auto& sample : memory.TakeSamples()) samples.push_back(std::move(sample));

    ASSERT_EQ(samples.size(), ends.size());
    for (size_t i = 0; i < ends.size(); ++i) {
      std::map<uint32_t, int64_t> live;
      for (const Change& change : changes) {
        if (change.time <= ends[i]) live[change.series] += change.bytes;
      }
      EXPECT_EQ(samples[i].step, i);
      EXPECT_EQ(samples[i].live, Live(live.begin(), live.end())) << seed << " " << i;
    }
  }
}

// The samples that are in the store, were everything flushed at once.
std::map<uint64_t, StepMemory::Sample> Store(
    StepMemory& memory, std::map<uint64_t, StepMemory::Sample> all) {
  std::erase_if(all,
                [&](const auto& item) { return item.first % memory.stride() != 0; });
  for (auto& sample : memory.TakeSamples()) all[sample.ordinal] = sample;
  return all;
}

TEST(StepMemory, KeepsEverySecondFourthAndSoOnWhereThereAreMany) {
  StepMemory memory;
  std::map<uint64_t, StepMemory::Sample> stored;
  for (uint64_t step = 0; step < 100'000; ++step) {
    memory.Change(10 * step, 1, 1);
    memory.EndStep(step + 5, 10 * step + 1);
    memory.Advance(10 * step + 2);
    if (step % 700 == 0) stored = Store(memory, std::move(stored));
    ASSERT_LE(stored.size(), StepMemory::kMaxSamples);
  }
  stored = Store(memory, std::move(stored));
  EXPECT_GT(stored.size(), StepMemory::kMaxSamples / 2);
  EXPECT_EQ(memory.stride(), 128u);
  for (const auto& [ordinal, sample] : stored) {
    EXPECT_EQ(ordinal % 128, 0u);
    EXPECT_EQ(sample.step, ordinal + 5);
    EXPECT_EQ(sample.live, (Live{{1, static_cast<int64_t>(ordinal) + 1}}));
  }
}

TEST(StepMemory, GoesOnWhereAnEarlierLifeEnded) {
  StepMemory memory;
  memory.RestoreLive(1, 500);
  memory.RestoreSamples(3, 4, 8);
  EXPECT_EQ(memory.stride(), 4u);
  for (uint64_t i = 1; i <= 4; ++i) memory.EndStep(8 + i, 100 * i);
  memory.Change(350, 1, -100);
  memory.Advance(kForever);
  auto samples = memory.TakeSamples();
  ASSERT_EQ(samples.size(), 1u);
  EXPECT_EQ(samples[0].ordinal, 12u);
  EXPECT_EQ(samples[0].step, 12u);
  EXPECT_EQ(samples[0].live, (Live{{1, 400}}));
}

}  // namespace
}  // namespace lull::aggregate
