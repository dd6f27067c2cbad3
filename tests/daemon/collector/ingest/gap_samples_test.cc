#include "daemon/collector/ingest/gap_samples.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <tuple>
#include <vector>

#include "daemon/base/event_views.h"
#include "tests/trials.h"

namespace lull::collector {
namespace {

using aggregate::Event;

Event Sample(uint32_t tid, uint64_t time_ns, uint32_t series = 1) {
  Event event;
  event.tid = tid;
  event.start_ns = time_ns;
  SampleView{event}.set_weight_ns(5);
  event.series = series;
  return event;
}

Event Idle(uint32_t tid, uint64_t start_ns, uint64_t end_ns, uint32_t series) {
  Event event;
  event.tid = tid;
  event.start_ns = start_ns;
  event.duration_ns = end_ns - start_ns;
  event.series = series;
  return event;
}

using Pair = std::tuple<uint32_t, uint64_t, uint32_t, uint32_t>;

std::vector<Pair> Pairs(std::vector<GapSamples::Found> found) {
  std::vector<Pair> pairs;
  for (const GapSamples::Found& f : found) {
    pairs.emplace_back(Number(f.tid), f.sample.time_ns, f.sample.series, f.idle_series);
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

TEST(GapSamples, FindsASampleThatComesBeforeItsGapAndOneThatComesAfterIt) {
  GapSamples samples;
  samples.AddSample(Sample(7, 150));
  EXPECT_TRUE(samples.Take().empty());
  samples.AddIdle(Idle(7, 100, 200, 3));
  EXPECT_EQ(Pairs(samples.Take()), (std::vector<Pair>{{7, 150, 1, 3}}));
  samples.AddSample(Sample(7, 199, 2));
  EXPECT_EQ(Pairs(samples.Take()), (std::vector<Pair>{{7, 199, 2, 3}}));
  EXPECT_TRUE(samples.Take().empty()) << "once";
}

TEST(GapSamples, TakesAGapFromItsStartToItsEndOfItsThreadAlone) {
  GapSamples samples;
  samples.AddIdle(Idle(7, 100, 200, 3));
  for (uint64_t time : {99, 100, 199, 200}) samples.AddSample(Sample(7, time));
  samples.AddSample(Sample(8, 150));
  EXPECT_EQ(Pairs(samples.Take()), (std::vector<Pair>{{7, 100, 1, 3}, {7, 199, 1, 3}}));
}

TEST(GapSamples, TellsASampleToEachDeviceThatIdled) {
  GapSamples samples;
  samples.AddIdle(Idle(7, 100, 200, 3));
  samples.AddIdle(Idle(7, 140, 160, 4));  // of another device
  samples.AddSample(Sample(7, 150));
  EXPECT_EQ(Pairs(samples.Take()), (std::vector<Pair>{{7, 150, 1, 3}, {7, 150, 1, 4}}));
}

TEST(GapSamples, TellsNothingAgainThatAnEarlierCollectorHasTold) {
  GapSamples samples;
  samples.Replay(true);
  samples.AddIdle(Idle(7, 100, 200, 3));
  samples.AddSample(Sample(7, 150));
  samples.AddSample(Sample(7, 250));
  samples.Replay(false);
  EXPECT_TRUE(samples.Take().empty());
  samples.AddIdle(Idle(7, 200, 300, 5));  // judged after the restart
  samples.AddSample(Sample(7, 160));      // came after it
  EXPECT_EQ(Pairs(samples.Take()), (std::vector<Pair>{{7, 160, 1, 3}, {7, 250, 1, 5}}));
}

TEST(GapSamples, ForgetsWhatIsOver) {
  GapSamples samples;
  samples.AddIdle(Idle(7, 100, 200, 3));
  samples.AddSample(Sample(7, 150));
  samples.AddSample(Sample(8, 250));
  EXPECT_EQ(samples.size(), 3u);
  samples.Take();
  samples.Forget(200);
  EXPECT_EQ(samples.size(), 1u);
  samples.AddSample(Sample(7, 150));
  EXPECT_TRUE(samples.Take().empty());
}

TEST(GapSamples, HoldsABoundedNumber) {
  GapSamples samples;
  constexpr uint32_t kMany = Trials(600'000u, 300'000u);
  for (uint32_t i = 0; i < kMany; ++i) samples.AddSample(Sample(7, i));
  EXPECT_LE(samples.size(), 250'001u);
  samples.AddIdle(Idle(7, kMany - 1000, kMany, 3));
  EXPECT_EQ(samples.Take().size(), 1000u) << "the newest stay";
  for (uint32_t tid = 0; tid < kMany; ++tid) samples.AddSample(Sample(tid, 1));
  EXPECT_LE(samples.size(), 250'001u);
}

// Of an imported trace: one after the other, of any length.
TEST(GapSamples, FindsStretchesInAnyOrder) {
  for (uint32_t seed = 0; seed < 100; ++seed) {
    std::mt19937 random(seed);
    std::vector<Event> idle, samples;
    uint32_t series = 0;
    for (uint64_t at = random() % 50; at < 3000;) {
      const uint64_t end = at + 1 + random() % (random() % 4 == 0 ? 400 : 20);
      idle.push_back(Idle(1, at, end, ++series));
      at = end + random() % 30;
    }
    for (uint64_t at = random() % 50; at < 3000;) {
      const uint64_t end = at + 1 + random() % (random() % 4 == 0 ? 900 : 9);
      samples.push_back(Sample(1, at, ++series));
      samples.back().duration_ns = end - at;
      at = end + (random() % 2 == 0 ? 0 : random() % 30);
    }
    std::vector<Pair> want;
    for (const Event& s : samples) {
      for (const Event& i : idle) {
        const uint64_t start = std::max(s.start_ns, i.start_ns);
        if (start >= std::min(s.start_ns + s.duration_ns, i.start_ns + i.duration_ns)) {
          continue;
        }
        want.emplace_back(1, start, s.series, i.series);
      }
    }
    std::sort(want.begin(), want.end());
    std::shuffle(idle.begin(), idle.end(), random);
    std::shuffle(samples.begin(), samples.end(), random);
    GapSamples found;
    const size_t half = samples.size() / 2;
    for (size_t i = 0; i < half; ++i) found.AddSample(samples[i]);
    for (const Event& one : idle) found.AddIdle(one);
    for (size_t i = half; i < samples.size(); ++i) found.AddSample(samples[i]);
    EXPECT_EQ(Pairs(found.Take()), want) << "seed " << seed;
  }
}

TEST(GapSamples, FindsWhatLooksAtAllPairsFindInAnyOrder) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    struct Item {
      bool idle;
      Event event;
    };
    std::vector<Item> items;
    uint32_t series = 0;
    for (uint32_t device = 0; device < 2; ++device) {  // disjoint on each
      for (uint64_t at = random() % 50; at < 3000;) {
        uint64_t end = at + 1 + random() % (random() % 4 == 0 ? 400 : 20);
        items.push_back({true, Idle(1 + random() % 2, at, end, ++series)});
        at = end + random() % 30;
      }
    }
    for (int i = 0; i < 100; ++i) {
      items.push_back({false, Sample(1 + random() % 2, random() % 3200, ++series)});
    }
    std::vector<Pair> want;
    for (const Item& s : items) {
      for (const Item& i : items) {
        if (s.idle || !i.idle || s.event.tid != i.event.tid) continue;
        if (s.event.start_ns < i.event.start_ns ||
            s.event.start_ns >= i.event.start_ns + i.event.duration_ns) {
          continue;
        }
        want.emplace_back(s.event.tid, s.event.start_ns, s.event.series,
                          i.event.series);
      }
    }
    std::sort(want.begin(), want.end());
    ASSERT_FALSE(want.empty());
    std::shuffle(items.begin(), items.end(), random);
    GapSamples samples;
    for (const Item& item : items) {
      item.idle ? samples.AddIdle(item.event) : samples.AddSample(item.event);
    }
    EXPECT_EQ(Pairs(samples.Take()), want) << "seed " << seed;
  }
}

}  // namespace
}  // namespace lull::collector
