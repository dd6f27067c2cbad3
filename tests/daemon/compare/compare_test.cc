#include "daemon/compare/compare.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/daemon/compare/made_runs.h"
#include "tests/trials.h"

namespace lull::testing {
namespace {

using compare::Comparison;
using compare::Runs;
using compare::Verdict;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr int kComparisons = Trials(200, 40);

std::vector<MadeRun> Five(const MadeRun& made) {
  std::vector<MadeRun> runs(5, made);
  return runs;
}

MadeRun Program(double run_spread) {
  MadeRun made;
  made.steps = 150;
  made.step_spread = 0.025;
  made.run_spread = run_spread;
  made.syncs = {{}};
  return made;
}

MadeRun WithTwoPercentSync(double run_spread) {
  MadeRun made = Program(run_spread);
  made.step_ms *= 1.02;
  made.syncs.push_back({"/job/metrics.py", 90, "update", "cudaMemcpyAsync", 1, 1});
  return made;
}

bool Claims(const Comparison& result) {
  return result.verdict == Verdict::kFaster || result.verdict == Verdict::kSlower;
}

// More than the two hundred that are promised: chance then lies further from the bound.
TEST(CompareTest, EqualProgramsDifferInFewComparisons) {
  constexpr int kEqual = Trials(400, 20);
  struct Case {
    double run_spread, likeness;
  };
  for (const Case& one : {Case{0, 0.5}, {0.005, 0.9}, {0.03, 0.5}}) {
    SCOPED_TRACE(one.run_spread);
    MadeRun made = Program(one.run_spread);
    made.likeness = one.likeness;
    int claims = 0;
    for (int i = 0; i < kEqual; ++i) {
      const Comparison result =
          CompareMade(Five(made), Five(made), static_cast<uint64_t>(1000 + i));
      ASSERT_THAT(result.reasons, IsEmpty());
      if (Claims(result)) ++claims;
      EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.came.empty() &&
                  result.syncs.changed.empty());
    }
    RecordProperty(absl::StrCat("claims_at_", one.run_spread), claims);
    if (!kSanitized) {
      EXPECT_LE(claims, kEqual * 8 / 100);
    }
  }
}

TEST(CompareTest, ASyncOfTwoPercentIsFoundInAllAndItsTimeWhereTheSpreadAllowsIt) {
  int slower = 0;
  for (int i = 0; i < kComparisons; ++i) {
    const Comparison result =
        CompareMade(Five(Program(0.004)), Five(WithTwoPercentSync(0.004)),
                    static_cast<uint64_t>(5000 + i));
    ASSERT_EQ(result.syncs.came.size(), 1);
    EXPECT_EQ(result.syncs.came[0].b.site.line(), 90);
    EXPECT_TRUE(result.syncs.gone.empty() && result.syncs.changed.empty());
    EXPECT_NE(result.verdict, Verdict::kFaster);
    if (result.verdict == Verdict::kSlower) ++slower;
  }
  EXPECT_GE(slower, kComparisons * 95 / 100);
  RecordProperty("slower", slower);
}

TEST(CompareTest, WhereTheSpreadIsTooWideItSaysHowManyRunsItTakes) {
  int shown = 0;
  for (int i = 0; i < kComparisons; ++i) {
    const Comparison result =
        CompareMade(Five(Program(0.03)), Five(WithTwoPercentSync(0.03)),
                    static_cast<uint64_t>(9000 + i));
    EXPECT_EQ(result.syncs.came.size(), 1);  // counts know no spread
    ASSERT_TRUE(result.step && result.step->change);
    if (Claims(result)) {
      ++shown;
      continue;
    }
    EXPECT_EQ(result.verdict, Verdict::kSyncsChanged);
    EXPECT_GT(result.step->change->detectable_percent, 2);
    ASSERT_TRUE(result.step->runs_needed);
    EXPECT_GT(*result.step->runs_needed, 5);
  }
  EXPECT_LT(shown, kComparisons / 2);
}

TEST(CompareTest, OneRunASideClaimsNoTimes) {
  MadeRun half = Program(0);
  half.step_ms /= 2;
  const Comparison result = CompareMade({Program(0)}, {half});
  EXPECT_EQ(result.verdict, Verdict::kNoDifference);
  ASSERT_TRUE(result.step && result.step->change);
  EXPECT_FALSE(result.step->known);
  EXPECT_NEAR(result.step->change->percent, -50, 3);
  EXPECT_EQ(result.step->runs_needed, std::nullopt);
  EXPECT_THAT(result.warnings, ElementsAre(HasSubstr("one run a side")));
}

// The interval is of parts of the runs; it lies around what is told of the runs.
TEST(CompareTest, OfOneRunASideTheIntervalLiesAroundTheMediansThatAreTold) {
  MadeRun longer = Program(0);
  longer.step_ms *= 1.3;
  longer.step_spread = 0.4;  // medians of parts differ from that of the whole
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Comparison result = CompareMade({Program(0)}, {longer}, seed);
    ASSERT_TRUE(result.step && result.step->change);
    const compare::StepTime& step = *result.step;
    const double ratio = step.b_ms / step.a_ms;
    auto factor = [](double percent) { return 1 + percent / 100; };
    EXPECT_NEAR(factor(step.change->percent), ratio, 1e-9);
    EXPECT_LT(step.change->low_percent, step.change->percent);
    EXPECT_GT(step.change->high_percent, step.change->percent);
    // As far to each side, by factors.
    EXPECT_NEAR(factor(step.change->low_percent) * factor(step.change->high_percent),
                ratio * ratio, 1e-6);
  }
}

TEST(CompareTest, ALargeDifferenceIsShownWithItsSize) {
  MadeRun quick = Program(0.005);
  quick.step_ms = 40;
  const Comparison result = CompareMade(Five(Program(0.005)), Five(quick));
  EXPECT_EQ(result.verdict, Verdict::kFaster);
  EXPECT_NEAR(result.step->change->percent, -20, 1.5);
  EXPECT_LT(result.step->change->high_percent, -18);
  EXPECT_NEAR(result.step->a_ms, 50, 1);
  EXPECT_NEAR(result.step->b_ms, 40, 1);
}

// What keeps a comparison from a verdict, also of a program that is twice as fast.
class FootingTest : public ::testing::Test {
 protected:
  Comparison Result() {
    compare::ChosenSteps chosen =
        compare::ChooseSteps({&a_[0], &a_[1], &b_[0], &b_[1]});
    for (size_t i = 0; i < 2; ++i) {
      Answer(slow_, &a_[i]);
      Answer(quick_, &b_[i]);
    }
    return compare::Compare(a_, b_, {2, chosen});
  }

  void SetUp() override {
    quick_.step_ms = 25;
    Normal normal(3);
    for (int i = 0; i < 2; ++i) {
      a_.push_back(MakeWhole(slow_, normal));
      b_.push_back(MakeWhole(quick_, normal));
    }
  }

  MadeRun slow_, quick_;
  Runs a_, b_;
};

TEST_F(FootingTest, OnEqualFootingItIsFaster) {
  EXPECT_EQ(Result().verdict, Verdict::kFaster);
}

TEST_F(FootingTest, LostEvents) {
  b_[1].whole.mutable_losses()->set_events_lost(1);
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kCannotJudge);
  EXPECT_THAT(result.reasons, ElementsAre("1 events were lost of made (made0000)"));
}

TEST_F(FootingTest, AnyLossThatLeavesAJobIncomplete) {
  a_[0].whole.mutable_losses()->set_processes_without_memory(1);
  EXPECT_EQ(Result().verdict, Verdict::kCannotJudge);
}

TEST_F(FootingTest, WaitsUnderTheThresholdAreNoLoss) {
  a_[0].whole.mutable_losses()->set_short_waits(100);
  EXPECT_EQ(Result().verdict, Verdict::kFaster);
}

TEST_F(FootingTest, AnEmptyCapture) {
  b_[0].whole.clear_losses();
  b_[0].whole.clear_details();
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kCannotJudge);
  EXPECT_FALSE(result.step);
  EXPECT_THAT(result.reasons, Contains(HasSubstr("nothing was recorded")));
}

TEST_F(FootingTest, NoSteps) {
  b_[0].whole.mutable_details(0)->clear_steps();
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kCannotJudge);
  EXPECT_THAT(result.reasons, Contains(HasSubstr("no steps were seen in made")));
  EXPECT_TRUE(result.syncs.gone.empty());
}

TEST_F(FootingTest, AnotherGpu) {
  for (auto& run : a_) run.whole.add_devices()->set_name("H100");
  for (auto& run : b_) run.whole.add_devices()->set_name("A100");
  EXPECT_THAT(Result().reasons, ElementsAre("the GPUs differ (A: H100; B: A100)"));
}

TEST_F(FootingTest, AnotherMode) {
  for (auto& run : b_) run.whole.mutable_gpu()->set_mode(v1::GPU_MODE_CONTINUOUS);
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kCannotJudge);
  EXPECT_THAT(result.reasons, ElementsAre(HasSubstr("A: host; B: continuous")));
}

TEST_F(FootingTest, TracedAgainstUntracedSteps) {
  for (auto& run : a_) {
    run.whole.mutable_gpu()->set_mode(v1::GPU_MODE_WINDOW);
    for (auto& row : *run.whole.mutable_details(0)->mutable_steps()->mutable_steps()) {
      row.set_traced(true);
    }
  }
  for (auto& run : b_) run.whole.mutable_gpu()->set_mode(v1::GPU_MODE_WINDOW);
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kCannotJudge);
  EXPECT_THAT(result.reasons, ElementsAre(HasSubstr("no steps of one kind")));
}

TEST_F(FootingTest, AnotherNumberOfProcesses) {
  Normal normal(9);
  quick_.processes = 2;
  for (auto& run : b_) run = MakeWhole(quick_, normal);
  EXPECT_THAT(Result().reasons, ElementsAre(HasSubstr("number of processes")));
}

TEST_F(FootingTest, OtherMarksOfSteps) {
  for (auto& run : b_)
    run.whole.mutable_details(0)->mutable_steps()->set_source("nvtx");
  EXPECT_THAT(Result().reasons, ElementsAre(HasSubstr("other marks")));
}

TEST_F(FootingTest, StepsThatDoNotSettleHaveCountsAndNoTimes) {
  auto& rows = *b_[0].whole.mutable_details(0)->mutable_steps()->mutable_steps();
  for (int i = 1; i < 202; ++i) rows[i].set_duration_ns(3 * rows[i].duration_ns());
  const Comparison result = Result();
  EXPECT_THAT(result.reasons, IsEmpty());
  EXPECT_THAT(result.warnings, Contains(HasSubstr("did not settle")));
  EXPECT_EQ(result.verdict, Verdict::kNoDifference);
}

TEST_F(FootingTest, WhatAReaderShouldKnow) {
  b_[0].whole.mutable_job()->set_host("there");
  b_[0].whole.mutable_job()->set_exit_status(1);
  for (auto& run : b_) run.whole.mutable_job()->set_start_realtime_ns(7);
  const Comparison result = Result();
  EXPECT_EQ(result.verdict, Verdict::kFaster);
  EXPECT_THAT(result.warnings, ::testing::UnorderedElementsAre(
                                   HasSubstr("the hosts differ"),
                                   HasSubstr("exit status 1"), HasSubstr("A B A B")));
}

TEST(CompareTest, CausesAreMillisecondsOfTracedTimePerStep) {
  MadeRun made;
  made.traced = true;
  Normal normal(1);
  Runs a, b;
  a.push_back(MakeWhole(made, normal));
  b.push_back(MakeWhole(made, normal));
  const compare::ChosenSteps chosen = compare::ChooseSteps({&a[0], &b[0]});
  Answer(made, &a[0]);
  Answer(made, &b[0]);
  auto add = [](Runs& runs, v1::GapCause cause, double share) {
    v1::ReportReply& all = runs[0].replies[0].all;
    v1::CauseRow* row = all.mutable_gaps()->add_causes();
    row->set_cause(cause);
    row->set_total_ns(
        static_cast<uint64_t>(share * static_cast<double>(all.gpu().traced_ns())));
  };
  add(a, v1::GAP_CAUSE_SYNC, 0.2);
  add(b, v1::GAP_CAUSE_SYNC, 0.1);
  add(b, v1::GAP_CAUSE_GC, 0.02);
  const Comparison result = compare::Compare(a, b, {2, chosen});
  EXPECT_TRUE(result.traced_steps);
  ASSERT_EQ(result.causes.size(), 2);
  EXPECT_EQ(result.causes[0].cause, v1::GAP_CAUSE_SYNC);
  EXPECT_NEAR(result.causes[0].ms.a, 10, 0.2);
  EXPECT_NEAR(result.causes[0].ms.b, 5, 0.1);
  EXPECT_FALSE(result.causes[0].ms.low);
  EXPECT_NEAR(result.causes[1].ms.a, 0, 1e-9);
  EXPECT_NEAR(result.causes[1].ms.b, 1, 0.02);
  // Without GPU truth on one side nothing is said of the GPU.
  b[0].replies[0].all.mutable_gpu()->set_traced_ns(0);
  EXPECT_THAT(compare::Compare(a, b, {2, chosen}).causes, IsEmpty());
}

TEST(CompareTest, MemoryOfARunThatWasArmedLateIsNotCompared) {
  for (const bool late : {false, true}) {
    testing::Normal normal(1);
    Runs a = {testing::MakeWhole(MadeRun{}, normal)};
    Runs b = {testing::MakeWhole(MadeRun{}, normal)};
    for (Runs* side : {&a, &b}) {
      v1::MemoryRow* row = (*side)[0].whole.mutable_memory()->add_rows();
      row->set_allocator("cuda");
      row->set_peak_bytes(1 << 20);
    }
    b[0].whole.mutable_job()->set_partly_recorded(late);
    compare::Question question;
    question.chosen = compare::ChooseSteps({&a[0], &b[0]});
    testing::Answer(MadeRun{}, &a[0]);
    testing::Answer(MadeRun{}, &b[0]);
    const Comparison comparison = Compare(a, b, question);
    EXPECT_EQ(comparison.memory.size(), late ? 0U : 1U);
    EXPECT_EQ(std::count_if(comparison.warnings.begin(), comparison.warnings.end(),
                            [](const std::string& warning) {
                              return warning.find("memory cannot be told") == 0;
                            }),
              late ? 1 : 0);
  }
}

TEST(CompareTest, OfARunWhoseStepsWereSampledTensorsAreNotCompared) {
  testing::Normal normal(1);
  Runs a = {testing::MakeWhole(MadeRun{}, normal)};
  Runs b = {testing::MakeWhole(MadeRun{}, normal)};
  for (Runs* side : {&a, &b}) {
    for (const char* allocator : {"cuda", "torch_cuda", "torch_cpu"}) {
      v1::MemoryRow* row = (*side)[0].whole.mutable_memory()->add_rows();
      row->set_allocator(allocator);
      row->set_peak_bytes(1 << 20);
    }
  }
  b[0].whole.mutable_job()->set_steps_sampled(true);
  compare::Question question;
  question.chosen = compare::ChooseSteps({&a[0], &b[0]});
  testing::Answer(MadeRun{}, &a[0]);
  testing::Answer(MadeRun{}, &b[0]);
  const Comparison comparison = Compare(a, b, question);
  ASSERT_EQ(comparison.memory.size(), 1U);
  EXPECT_EQ(comparison.memory[0].allocator, "cuda");
  EXPECT_EQ(std::count_if(comparison.warnings.begin(), comparison.warnings.end(),
                          [](const std::string& warning) {
                            return warning.find("were sampled") != std::string::npos;
                          }),
            2);
}

}  // namespace
}  // namespace lull::testing
