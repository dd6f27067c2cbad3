#include "daemon/compare/sync_changes.h"

#include <gtest/gtest.h>

#include "tests/daemon/compare/made_runs.h"

namespace lull::testing {
namespace {

using compare::Comparison;

MadeRun With(std::vector<MadeSync> syncs, size_t steps = 200) {
  MadeRun made;
  made.steps = steps;
  made.syncs = std::move(syncs);
  return made;
}

MadeSync Sync(int line, int every = 1, int calls = 1) {
  MadeSync sync;
  sync.line = line;
  sync.every = every;
  sync.calls = calls;
  return sync;
}

TEST(SyncChangesTest, OneRunASideIsEnoughForWhatEveryStepDoes) {
  const Comparison result =
      CompareMade({With({Sync(10), Sync(90)})}, {With({Sync(10)})});
  ASSERT_EQ(result.syncs.gone.size(), 1);
  EXPECT_EQ(result.syncs.gone[0].a.site.line(), 90);
  EXPECT_EQ(result.syncs.gone[0].a.calls_per_step, 1);
  EXPECT_TRUE(result.syncs.came.empty());
  EXPECT_TRUE(result.syncs.changed.empty());
  EXPECT_EQ(result.syncs.same.size(), 1);
  EXPECT_EQ(result.verdict, compare::Verdict::kSyncsChanged);
  const Comparison back = CompareMade({With({Sync(10)})}, {With({Sync(10), Sync(90)})});
  ASSERT_EQ(back.syncs.came.size(), 1);
  EXPECT_EQ(back.syncs.came[0].b.site.line(), 90);
}

TEST(SyncChangesTest, TenCallsAreToldFromEleven) {
  const Comparison result =
      CompareMade({With({Sync(10, 1, 10)})}, {With({Sync(10, 1, 11)})});
  ASSERT_EQ(result.syncs.changed.size(), 1);
  EXPECT_EQ(result.syncs.changed[0].a.calls_per_step, 10);
  EXPECT_EQ(result.syncs.changed[0].b.calls_per_step, 11);
}

TEST(SyncChangesTest, TheSameProgramOfOtherLengthDiffersInNothing) {
  for (int every : {1, 2, 3, 7, 10, 50, 190}) {
    SCOPED_TRACE(every);
    const Comparison result =
        CompareMade({With({Sync(10, every)}, 397)}, {With({Sync(10, every)}, 211)});
    EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.came.empty() &&
                result.syncs.changed.empty());
  }
}

TEST(SyncChangesTest, WhatIsDoneNowAndThenIsFoundWhenThereIsEnoughOfIt) {
  const Comparison often = CompareMade({With({Sync(10, 10)}, 400)}, {With({}, 400)});
  EXPECT_EQ(often.syncs.gone.size(), 1);
  // Three calls in a run may be chance.
  const Comparison seldom = CompareMade({With({Sync(10, 110)}, 400)}, {With({}, 400)});
  EXPECT_TRUE(seldom.syncs.gone.empty());
  EXPECT_EQ(seldom.syncs.rare.size(), 1);
}

TEST(SyncChangesTest, ABurstIsNotTakenForAChange) {
  // An evaluation of 60 syncs, which lies in the steps of A alone.
  const Comparison result =
      CompareMade({With({Sync(10, 390, 60)}, 400)}, {With({}, 400)});
  EXPECT_TRUE(result.syncs.gone.empty());
  EXPECT_EQ(result.syncs.rare.size(), 1);
}

TEST(SyncChangesTest, ASyncThatMovedToAnotherFileIsSaidToHaveMoved) {
  MadeSync moved = Sync(30);
  moved.file = "/job/metrics.py";
  const Comparison result = CompareMade({With({Sync(10)})}, {With({moved})});
  EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.came.empty());
  ASSERT_EQ(result.syncs.moved.size(), 1);
  EXPECT_TRUE(result.syncs.moved[0].moved);
  EXPECT_EQ(result.verdict, compare::Verdict::kNoDifference);
}

MadeSync Reads(int line, const std::string& text) {
  MadeSync sync = Sync(line);
  sync.text = text;
  return sync;
}

TEST(SyncChangesTest, ASyncThatReplacesAnotherInItsFunctionIsNew) {
  const Comparison result = CompareMade({With({Reads(10, "mean += loss.item()")})},
                                        {With({Reads(10, "norm = total.cpu()")})});
  ASSERT_EQ(result.syncs.came.size(), 1);
  ASSERT_EQ(result.syncs.gone.size(), 1);
  EXPECT_EQ(result.verdict, compare::Verdict::kSyncsChanged);
  // For each rank by itself, as `lull check` asks.
  MadeRun a = With({Reads(10, "mean += loss.item()")});
  MadeRun b =
      With({Reads(14, "mean  += loss.item()"), Reads(10, "norm = total.cpu()")});
  a.processes = b.processes = 2;
  b.syncs[1].rank = 1;
  const Comparison ranks = CompareMade({a}, {b});
  ASSERT_EQ(ranks.each_process.size(), 2);
  EXPECT_EQ(ranks.each_process[0].syncs.came.size(), 0);
  EXPECT_EQ(ranks.each_process[1].syncs.came.size(), 1);
}

TEST(SyncChangesTest, ALineThatReadsOtherwiseWhereItStandsIsSaidToBeEdited) {
  MadeSync was = Reads(10, "mean += loss.item()"),
           is = Reads(10, "mean += grad.item()");
  was.above = is.above = "seen += len(batch)";
  const Comparison result = CompareMade({With({was})}, {With({is})});
  EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.came.empty());
  ASSERT_EQ(result.syncs.same.size(), 1);
  EXPECT_TRUE(result.syncs.same[0].edited);
  EXPECT_EQ(result.verdict, compare::Verdict::kNoDifference);
  // Comments and blanks are no edit, nor is a text that is not known.
  is.text = "mean  += loss.item()  # why";
  EXPECT_FALSE(CompareMade({With({was})}, {With({is})}).syncs.same[0].edited);
  is.text = "";
  EXPECT_FALSE(CompareMade({With({was})}, {With({is})}).syncs.same[0].edited);
}

TEST(SyncChangesTest, ALineThatRunsOfOneSideReadOtherwiseTellsNothing) {
  const Comparison result =
      CompareMade({With({Reads(10, "x")}), With({Reads(10, "y")})},
                  {With({Reads(10, "z")}), With({Reads(10, "z")})});
  EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.came.empty());
  EXPECT_EQ(result.syncs.same.size(), 1);
}

TEST(SyncChangesTest, RunsOfOneSideMayHaveFoldersOfTheirOwn) {
  auto in = [](const char* folder, int line) {
    MadeSync sync = Sync(line);
    sync.file = std::string(folder) + "/job/train.py";
    return sync;
  };
  const Comparison result =
      CompareMade({With({in("/tmp/1", 10), in("/tmp/1", 90)}),
                   With({in("/tmp/2", 10), in("/tmp/2", 90)})},
                  {With({in("/tmp/3", 10)}), With({in("/tmp/4", 10)})});
  ASSERT_EQ(result.syncs.gone.size(), 1);
  EXPECT_EQ(result.syncs.gone[0].a.site.line(), 90);
  EXPECT_EQ(result.syncs.gone[0].a.calls_per_step, 1);
  EXPECT_EQ(result.syncs.same.size(), 1);
}

TEST(SyncChangesTest, TwoFilesOfOneRunAreNotMixedUp) {
  MadeSync one = Sync(10), other = Sync(10);
  one.file = "/a/x/__init__.py";
  other.file = "/b/x/__init__.py";
  const Comparison result = CompareMade({With({one, other})}, {With({one})});
  ASSERT_EQ(result.syncs.gone.size(), 1);
  EXPECT_EQ(result.syncs.gone[0].a.site.file(), "/b/x/__init__.py");
}

TEST(SyncChangesTest, CountsArePerStepOfAProcess) {
  MadeRun four = With({Sync(10), Sync(20, 1, 3)});
  four.processes = 4;
  MadeRun other = four;
  other.syncs.pop_back();
  const Comparison result = CompareMade({four}, {other});
  ASSERT_EQ(result.syncs.gone.size(), 1);
  EXPECT_EQ(result.syncs.gone[0].a.calls_per_step, 3);
  EXPECT_NEAR(result.syncs.gone[0].a.blocked_ms_per_step, 3, 1e-9);
}

}  // namespace
}  // namespace lull::testing
