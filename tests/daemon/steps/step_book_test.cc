// The book against the rule taken literally, instant by instant, on random steps.
#include "daemon/steps/step_book.h"

#include <gtest/gtest.h>

#include <random>

namespace lull::steps {
namespace {

struct Stretch {
  Part part;
  uint64_t start_ns;
  uint64_t end_ns;
};

struct Story {
  std::vector<Stretch> stretches;  // in the order of their ends
  std::vector<Step> steps;         // without their parts
  uint64_t traced_from = 0, traced_to = 0;
};

Story RandomStory(uint64_t seed) {
  std::mt19937_64 random(seed);
  auto below = [&](uint64_t n) { return random() % n; };
  Story story;
  uint64_t end = 100 + below(400);
  for (uint64_t i = 0; i < 5 + below(60); ++i) {
    uint64_t start = below(end);
    story.stretches.push_back(
        {static_cast<Part>(below(kParts)), start, start + 1 + below(40)});
  }
  std::sort(story.stretches.begin(), story.stretches.end(),
            [](const Stretch& a, const Stretch& b) { return a.end_ns < b.end_ns; });
  uint64_t at = below(50);
  for (uint64_t number = 0; at < end; ++number) {
    Step step;
    step.number = number;
    step.start_ns = at;
    step.end_ns = at + 1 + below(80);
    at = step.end_ns + (below(4) == 0 ? below(20) : 0);
    story.steps.push_back(step);
  }
  story.traced_from = below(end);
  story.traced_to = story.traced_from + below(end);
  return story;
}

std::vector<Step> ByTheRule(const Story& story) {
  std::vector<Step> steps = story.steps;
  for (Step& step : steps) {
    step.traced = story.traced_from <= step.start_ns && step.end_ns <= story.traced_to;
    for (uint64_t at = step.start_ns; at < step.end_ns; ++at) {
      size_t first = kParts;
      for (const Stretch& stretch : story.stretches) {
        if (at < stretch.start_ns || at >= stretch.end_ns) continue;
        if (!step.traced && stretch.part <= Part::kCommunication) continue;
        first = std::min(first, static_cast<size_t>(stretch.part));
      }
      if (first < kParts) ++step.part_ns[first];
    }
  }
  return steps;
}

// As batches would bring it: what ended by `now` comes before Advance(now).
std::vector<Step> ByTheBook(const Story& story, uint64_t batch) {
  StepBook book({.patience_ns = 40});  // the longest stretch
  std::vector<Step> done;
  book.Trace(story.traced_from);
  size_t stretch = 0, step = 0;
  bool untraced = false;
  for (uint64_t now = batch; now < 1400 + batch; now += batch) {
    for (; stretch < story.stretches.size() && story.stretches[stretch].end_ns <= now;
         ++stretch) {
      const Stretch& s = story.stretches[stretch];
      book.Add(s.part, s.start_ns, s.end_ns);
    }
    for (; step < story.steps.size() && story.steps[step].end_ns <= now; ++step) {
      const Step& s = story.steps[step];
      book.AddStep(s.number, s.start_ns, s.end_ns);
    }
    if (!untraced && story.traced_to <= now) {
      book.Untrace(story.traced_to);
      untraced = true;
    }
    book.Advance(now, now, &done);
  }
  return done;
}

TEST(StepBook, TellsEachPartAsTheRuleDoes) {
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Story story = RandomStory(seed);
    std::vector<Step> expected = ByTheRule(story);
    for (uint64_t batch : {7u, 100u, 2000u}) {
      std::vector<Step> found = ByTheBook(story, batch);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].number, expected[i].number);
        EXPECT_EQ(found[i].traced, expected[i].traced);
        EXPECT_EQ(found[i].part_ns, expected[i].part_ns) << "step " << i;
      }
      if (HasFailure()) return;
    }
  }
}

TEST(StepBook, WaitsForTheRecordsOfTheDeviceInTracedTimeAlone) {
  StepBook book({.patience_ns = 0});
  std::vector<Step> done;
  book.Trace(0);
  book.Untrace(150);
  book.AddStep(0, 0, 100);
  book.Advance(1000, 50, &done);
  EXPECT_TRUE(done.empty());
  book.Add(Part::kKernel, 10, 30);
  book.Advance(1000, 100, &done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].part_ns[0], 20u);
  book.AddStep(1, 200, 300);
  book.Advance(1000, 100, &done);
  ASSERT_EQ(done.size(), 2u);
  EXPECT_FALSE(done[1].traced);
}

TEST(StepBook, CallsNoStepTracedOfWhichRecordsWereLost) {
  StepBook book({.patience_ns = 0});
  std::vector<Step> done;
  book.Trace(0);
  book.Lost(120, 130);
  book.AddStep(0, 0, 100);
  book.AddStep(1, 100, 200);
  book.AddStep(2, 200, 300);
  book.Advance(300, 300, &done);
  ASSERT_EQ(done.size(), 3u);
  EXPECT_TRUE(done[0].traced);
  EXPECT_FALSE(done[1].traced);
  EXPECT_TRUE(done[2].traced);
}

TEST(StepBook, LeavesOutTheStepThatGrewBeyondItsMemory) {
  StepBook book({.max_stretches = 100, .patience_ns = 0});
  std::vector<Step> done;
  for (uint64_t i = 0; i < 150; ++i) book.Add(Part::kRuntime, i * 10, i * 10 + 5);
  book.AddStep(0, 0, 1500);
  book.Add(Part::kRuntime, 2000, 2100);
  book.AddStep(1, 1990, 2200);
  book.Advance(3000, 3000, &done);
  ASSERT_EQ(done.size(), 1u);
  EXPECT_EQ(done[0].number, 1u);
  EXPECT_EQ(done[0].part_ns[static_cast<size_t>(Part::kRuntime)], 100u);
  EXPECT_LE(book.pending(), 100u);
}

}  // namespace
}  // namespace lull::steps
