#include "daemon/check/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "tests/daemon/compare/made_runs.h"

namespace lull::check {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeRun;
using testing::MadeSync;
using ::testing::SizeIs;

constexpr char kToday[] = "2026-11-24";

MadeSync SyncAt(const char* file, int line, int every = 1) {
  MadeSync sync;
  sync.file = file;
  sync.line = line;
  sync.every = every;
  return sync;
}

MadeRun RunOf(const char* name, std::vector<MadeSync> syncs, bool traced = true) {
  MadeRun run;
  run.name = name;
  run.traced = traced;
  run.syncs = std::move(syncs);
  return run;
}

// As the verb asks: the job by itself, and against the baseline. What the overview of
// such a run says of its GPU calls is not made.
Evidence EvidenceOf(const std::vector<MadeRun>& jobs,
                    const std::vector<MadeRun>& baseline = {}) {
  Evidence evidence;
  // Another seed than that of a comparison, as runs differ.
  evidence.alone = testing::MeasureMade(jobs, 7);
  if (!baseline.empty()) evidence.baseline = testing::CompareMade(baseline, jobs);
  for (auto* comparison : {&evidence.alone, &evidence.baseline}) {
    if (!*comparison) continue;
    for (auto* side : {&(*comparison)->a, &(*comparison)->b}) {
      for (compare::RunFacts& run : *side) run.gpu_calls = true;
    }
  }
  return evidence;
}

Verdict VerdictOn(const std::string& text, const Evidence& evidence,
                  const std::vector<Allowance>& allowances = {}) {
  auto parsed = ParseRule(text);
  if (!std::holds_alternative<Rule>(parsed)) {
    ADD_FAILURE() << text;
    return {};
  }
  return Judge({std::get<Rule>(parsed)}, evidence, allowances, kToday);
}

TEST(JudgeTest, SumsSyncPointsAndNamesTheirLines) {
  const Evidence evidence =
      EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1), SyncAt("/job/b.py", 2, 2)})});
  const Verdict verdict = VerdictOn("sync.calls_per_step > 1", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  const Measured& measured = verdict.rules[0].measured;
  EXPECT_NEAR(*measured.value, 1.5, 0.01);
  ASSERT_THAT(measured.parts, SizeIs(2));
  EXPECT_EQ(measured.parts[0].site.file(), "/job/a.py");
  EXPECT_EQ(measured.parts[0].value, 1);
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 2", evidence).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("sync.calls_per_step(a.py:1) > 1", evidence).outcome,
            Outcome::kPassed);
  EXPECT_EQ(VerdictOn("sync.calls_per_step(b.py) > 0.4", evidence).outcome,
            Outcome::kFailed);
}

TEST(JudgeTest, WastedTimeIsAShareOfTheStep) {
  // Half a millisecond of each of two calls, of steps of 50 ms.
  const Evidence evidence =
      EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1), SyncAt("/job/b.py", 2)})});
  const double value =
      *VerdictOn("sync.wasted_percent > 1", evidence).rules[0].measured.value;
  EXPECT_NEAR(value, 2, 0.1);
  EXPECT_EQ(VerdictOn("sync.wasted_percent > 3", evidence).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("sync.wasted_ms_per_step >= 0.9", evidence).outcome,
            Outcome::kFailed);
}

TEST(JudgeTest, WhatWasNotMeasuredHasNotPassed) {
  const Evidence host = EvidenceOf({RunOf("job", {}, /*traced=*/false)});
  for (const char* rule :
       {"sync.wasted_percent > 99", "gpu.idle_percent > 99",
        "cause.data.ms_per_step > 1e9", "memory.torch_cuda.peak_mib > 1e9",
        "step_ms.change_percent > 1e9", "sync.calls_per_step(new) > 99"}) {
    const Verdict verdict = VerdictOn(rule, host);
    EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge) << rule;
    EXPECT_NE(verdict.rules[0].measured.why_not, "") << rule;
  }
  // Of the host all is known.
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 0", host).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("host.gc.ms_per_step > 1", host).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("step_ms > 100", host).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("step_ms > 10", host).outcome, Outcome::kFailed);
}

TEST(JudgeTest, AJobWithoutGpuCallsHasNoSyncsToJudge) {
  Evidence evidence = EvidenceOf({RunOf("job", {}, /*traced=*/false)});
  evidence.alone->b[0].gpu_calls = false;
  const Verdict verdict = VerdictOn("sync.calls_per_step > 0", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("no GPU call"));
}

TEST(JudgeTest, LostDataAndJobsThatGoOnAreNotJudged) {
  Evidence evidence = EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1)})});
  evidence.alone->reasons = {"3 events were lost of job"};
  Verdict verdict = VerdictOn("sync.calls_per_step > 0", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_FALSE(verdict.rules[0].measured.value);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("3 events were lost"));
  evidence = EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1)})});
  evidence.alone->b[0].job.set_ended(false);
  verdict = VerdictOn("sync.calls_per_step > 5", evidence);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("is not over yet"));
  evidence = EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1)})});
  evidence.alone->b[0].gpu_complete = false;
  EXPECT_EQ(VerdictOn("gpu.idle_percent > 99", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 5", evidence).outcome, Outcome::kPassed);
}

TEST(JudgeTest, AnEmptyCaptureIsNotJudged) {
  MadeRun empty = RunOf("job", {});
  empty.steps = 0;
  const Evidence evidence = EvidenceOf({empty}, {RunOf("old", {SyncAt("a.py", 1)})});
  for (const char* rule : {"sync.calls_per_step > 9", "step_ms > 1e9",
                           "sync.calls_per_step(new) > 9", "host.gc.ms_per_step > 9"}) {
    const Verdict verdict = VerdictOn(rule, evidence);
    EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge) << rule;
    EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("too few steps"));
  }
}

TEST(JudgeTest, ASyncThatCameOrMovedToAnotherFileIsNew) {
  const MadeRun old = RunOf("old", {SyncAt("/job/a.py", 10)});
  const char* rule = "sync.calls_per_step(new) > 0";
  // Further down in its file it is the same.
  EXPECT_EQ(
      VerdictOn(rule, EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 14)})}, {old}))
          .outcome,
      Outcome::kPassed);
  const Verdict moved =
      VerdictOn(rule, EvidenceOf({RunOf("job", {SyncAt("/job/b.py", 10)})}, {old}));
  EXPECT_EQ(moved.outcome, Outcome::kFailed);
  ASSERT_THAT(moved.rules[0].measured.parts, SizeIs(1));
  EXPECT_EQ(moved.rules[0].measured.parts[0].change, "moved");
  EXPECT_EQ(moved.rules[0].measured.parts[0].moved_from, "/job/a.py:10");
  MadeSync other = SyncAt("/job/c.py", 3);
  other.function = "other";
  const Verdict came = VerdictOn(
      rule, EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 10), other})}, {old}));
  EXPECT_EQ(came.outcome, Outcome::kFailed);
  ASSERT_THAT(came.rules[0].measured.parts, SizeIs(1));
  EXPECT_EQ(came.rules[0].measured.parts[0].change, "new");
}

TEST(JudgeTest, WhatIsCalledTooSeldomIsNeitherNewNorOld) {
  const MadeRun old = RunOf("old", {SyncAt("/job/a.py", 10)});
  MadeSync seldom = SyncAt("/job/c.py", 3, 100);  // three or four times in 390 steps
  seldom.function = "other";
  const Evidence evidence =
      EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 10), seldom})}, {old});
  EXPECT_EQ(VerdictOn("sync.calls_per_step(new) > 0", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("sync.calls_per_step(new) > 0.5", evidence).outcome,
            Outcome::kPassed);
}

TEST(JudgeTest, AllowancesHoldForTheirFileAlone) {
  const std::vector<Allowance> allowances = {{"a.py", 10, "", "", "logs", ""}};
  const char* rule = "sync.calls_per_step > 0";
  const Verdict allowed = VerdictOn(
      rule, EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 10)})}), allowances);
  EXPECT_EQ(allowed.outcome, Outcome::kPassed);
  EXPECT_EQ(*allowed.rules[0].measured.value, 0);
  EXPECT_EQ(allowed.rules[0].measured.parts[0].allowed, "logs");
  EXPECT_THAT(allowed.warnings, IsEmpty());
  const Verdict moved = VerdictOn(
      rule, EvidenceOf({RunOf("job", {SyncAt("/job/b.py", 10)})}), allowances);
  EXPECT_EQ(moved.outcome, Outcome::kFailed);
  ASSERT_THAT(moved.warnings, SizeIs(1));
  EXPECT_THAT(moved.warnings[0], HasSubstr("a.py:10 is of no sync point"));
}

TEST(JudgeTest, AnAllowanceThatIsOverAllowsNothingAndIsNamed) {
  const Verdict verdict = VerdictOn(
      "sync.calls_per_step > 0", EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 10)})}),
      {{"a.py", 10, "", "", "logs", "2026-11-23"}});
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  ASSERT_THAT(verdict.warnings, SizeIs(1));
  EXPECT_THAT(verdict.warnings[0], HasSubstr("a.py:10 ended with 2026-11-23"));
}

TEST(JudgeTest, AChangeOfTimesTakesRunsThatShowIt) {
  auto runs = [](const char* name, size_t count, double step_ms) {
    std::vector<MadeRun> made(count, RunOf(name, {}));
    for (MadeRun& run : made) {
      run.step_ms = step_ms;
      run.run_spread = 0.004;
    }
    return made;
  };
  const char* rule = "step_ms.change_percent > 5";
  Verdict verdict = VerdictOn(rule, EvidenceOf(runs("b", 1, 60), runs("a", 1, 50)));
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("too few runs"));
  verdict = VerdictOn(rule, EvidenceOf(runs("b", 5, 60), runs("a", 5, 50)));
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  EXPECT_LT(*verdict.rules[0].measured.low, 20);
  EXPECT_EQ(VerdictOn(rule, EvidenceOf(runs("b", 5, 50), runs("a", 5, 50))).outcome,
            Outcome::kPassed);
  // The bound lies where these runs cannot tell.
  verdict = VerdictOn(rule, EvidenceOf(runs("b", 2, 52.5), runs("a", 2, 50)));
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("95 % interval"));
}

TEST(JudgeTest, OneThatFailedIsAFailureAndNoneIsNoSuccess) {
  const Evidence evidence =
      EvidenceOf({RunOf("job", {SyncAt("/job/a.py", 1)}, /*traced=*/false)});
  std::vector<Rule> rules;
  for (const char* text :
       {"gpu.idle_percent > 1", "sync.calls_per_step > 0", "step_ms > 1e9"}) {
    rules.push_back(std::get<Rule>(ParseRule(text)));
  }
  EXPECT_EQ(Judge(rules, evidence, {}, kToday).outcome, Outcome::kFailed);
  EXPECT_EQ(Judge({rules[0], rules[2]}, evidence, {}, kToday).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(Judge({rules[2]}, evidence, {}, kToday).outcome, Outcome::kPassed);
  EXPECT_EQ(Judge({}, evidence, {}, kToday).outcome, Outcome::kCannotJudge);
}

TEST(JudgeTest, ReasonsAndNotesOfAJobByItselfAreSaidOnceAndNotOfSides) {
  MadeRun empty = RunOf("job", {});
  empty.steps = 0;
  EXPECT_THAT(EvidenceOf({empty}).alone->reasons, SizeIs(1));
  EXPECT_THAT(EvidenceOf({RunOf("job", {})}).alone->warnings, IsEmpty());
}

}  // namespace
}  // namespace lull::check
