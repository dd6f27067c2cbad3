#include "daemon/check/judge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "daemon/base/import_words.h"
#include "tests/daemon/compare/made_runs.h"

namespace lull::check {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::MadeRun;
using testing::MadeSync;
using ::testing::Not;
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

// As the verb asks: the job by itself, and against the baseline.
Evidence EvidenceOf(const std::vector<MadeRun>& jobs,
                    const std::vector<MadeRun>& baseline = {}) {
  Evidence evidence;
  // Another seed than that of a comparison, as runs differ.
  evidence.alone = testing::MeasureMade(jobs, 7);
  if (!baseline.empty()) {
    evidence.baseline = testing::CompareMade(baseline, jobs);
    evidence.own_steps = testing::CompareMade(baseline, jobs, 1, 2, /*own_steps=*/true);
  }
  return evidence;
}

using Change = std::function<void(compare::Run*)>;

// One job by itself, with other answers than are made.
Evidence EvidenceOfChanged(
    const MadeRun& made, const Change& whole,
    const Change& answers = [](compare::Run*) {}) {
  testing::Normal normal(7);
  compare::Runs runs = {testing::MakeWhole(made, normal)};
  whole(&runs[0]);
  const compare::ChosenSteps chosen = compare::ChooseSteps({&runs[0]});
  testing::Answer(made, &runs[0]);
  answers(&runs[0]);
  Evidence evidence;
  evidence.alone = compare::MeasureAlone(runs, chosen);
  return evidence;
}

Verdict VerdictOn(const std::string& text, const Evidence& evidence,
                  const std::vector<Allowance>& allowances = {}) {
  auto parsed = ParseRule(text);
  if (!std::holds_alternative<Rule>(parsed)) {
    ADD_FAILURE() << text;
    return {};
  }
  return Judge({std::get<Rule>(parsed)}, evidence, {allowances}, kToday);
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
  // It may be misspelt, or mended.
  const Verdict none = VerdictOn("sync.calls_per_step(c.py) > 0.4", evidence);
  EXPECT_EQ(none.outcome, Outcome::kPassed);
  ASSERT_THAT(none.warnings, SizeIs(1));
  EXPECT_THAT(none.warnings[0], HasSubstr("(c.py) > 0.4' is of no sync point"));
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
  MadeRun run = RunOf("job", {}, /*traced=*/false);
  run.gpu = false;
  const Evidence evidence = EvidenceOf({run});
  const Verdict verdict = VerdictOn("sync.calls_per_step > 0", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("no GPU call"));
}

TEST(JudgeTest, AJobOfMoreProcessesThanAreAskedAboutIsNotJudged) {
  MadeRun run = RunOf("job", {});
  run.processes = compare::kMostProcesses;
  const char* rule = "sync.calls_per_step > 0";
  EXPECT_EQ(VerdictOn(rule, EvidenceOf({run})).outcome, Outcome::kPassed);
  run.processes = compare::kMostProcesses + 1;
  const Verdict verdict = VerdictOn(rule, EvidenceOf({run}));
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("more than 16 processes"));
  EXPECT_EQ(VerdictOn("step_ms > 1e9", EvidenceOf({run})).outcome,
            Outcome::kCannotJudge);
}

TEST(JudgeTest, ARankOfWhichLittleIsKnownIsNotCoveredByTheOthers) {
  MadeRun run = RunOf("job", {});
  run.processes = 2;
  auto why = [&run](const char* rule, const Change& whole, const Change& answers) {
    const Verdict verdict = VerdictOn(rule, EvidenceOfChanged(run, whole, answers));
    EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge) << rule;
    return verdict.rules[0].measured.why_not;
  };
  const Change none = [](compare::Run*) {};
  EXPECT_EQ(VerdictOn("sync.wasted_percent > 1", EvidenceOfChanged(run, none)).outcome,
            Outcome::kPassed);
  const Change third = [](compare::Run* changed) {
    v1::ProcessRow* row = changed->whole.add_processes();
    row->set_pid(500);
    row->set_rank(2);
  };
  EXPECT_THAT(why("sync.calls_per_step > 0", third, none), HasSubstr("of rank 2"));
  EXPECT_THAT(why("step_ms > 1e9", third, none), HasSubstr("of rank 2"));
  const Change without_calls = [](compare::Run* changed) {
    changed->whole.mutable_processes(1)->set_gpu(false);
  };
  EXPECT_THAT(why("sync.calls_per_step > 0", without_calls, none),
              HasSubstr("a process made no GPU call"));
  const Change without_truth = [](compare::Run* changed) {
    changed->replies[1].all.clear_gpu();
  };
  EXPECT_THAT(why("sync.wasted_percent > 1", none, without_truth),
              HasSubstr("no GPU truth"));
  EXPECT_THAT(why("gpu.idle_percent > 99", none, without_truth),
              HasSubstr("no GPU truth"));
  // A window that only touches the steps, of 50 ms each.
  const Change touched = [](compare::Run* changed) {
    changed->replies[1].all.mutable_gpu()->set_traced_ns(1'000'000);
  };
  EXPECT_THAT(why("gpu.idle_percent > 99", none, touched), HasSubstr("less than one"));
  // A process that a rank started needs no steps.
  const Change worker = [](compare::Run* changed) {
    v1::ProcessRow* row = changed->whole.add_processes();
    row->set_pid(500);
    row->set_rank(1);
  };
  EXPECT_EQ(
      VerdictOn("sync.calls_per_step > 0", EvidenceOfChanged(run, worker)).outcome,
      Outcome::kPassed);
}

TEST(JudgeTest, CollectionsThatCouldNotBeSeenAreNotNone) {
  const Evidence evidence =
      EvidenceOfChanged(RunOf("job", {}), [](compare::Run* changed) {
        changed->whole.mutable_processes(0)->set_gc_hook(v1::GC_HOOK_STATE_FAILED);
      });
  EXPECT_EQ(VerdictOn("host.gc.ms_per_step > 1", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("cause.gc.percent > 1", evidence).outcome, Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("host.data.ms_per_step > 1", evidence).outcome, Outcome::kPassed);
}

// A loader that works in the process itself blocks in nothing.
TEST(JudgeTest, LoadsThatCouldNotBeSeenAreNotNone) {
  const Evidence evidence =
      EvidenceOfChanged(RunOf("job", {}), [](compare::Run* changed) {
        changed->whole.mutable_processes(0)->set_scope_hook(
            v1::SCOPE_HOOK_STATE_UNAVAILABLE);
      });
  EXPECT_EQ(VerdictOn("host.data.ms_per_step > 1", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("cause.data.percent > 1", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("host.gc.ms_per_step > 1", evidence).outcome, Outcome::kPassed);
}

TEST(JudgeTest, WhatIsNoNumberHasNotPassed) {
  Evidence evidence = EvidenceOf({RunOf("job", {})});
  evidence.alone->memory = {{"torch_cuda", {0, std::nan(""), {}, {}}, {}}};
  evidence.alone->b[0].allocators = {"torch_cuda"};
  EXPECT_EQ(VerdictOn("memory.torch_cuda.peak_mib > 1", evidence).outcome,
            Outcome::kCannotJudge);
}

TEST(JudgeTest, ARunOfWhoseMemoryNothingIsKnownIsNoRunWithoutMemory) {
  Evidence evidence = EvidenceOf({RunOf("a", {}), RunOf("b", {})});
  // As CompareMemory() has it: 0 and 9000 MiB.
  evidence.alone->memory = {{"torch_cuda", {0, 4500.0 * 1048576, {}, {}}, {}}};
  evidence.alone->b[1].allocators = {"torch_cuda"};
  const char* rule = "memory.torch_cuda.peak_mib > 8000";
  EXPECT_EQ(VerdictOn(rule, evidence).outcome, Outcome::kCannotJudge);
  evidence.alone->b[0].allocators = {"torch_cuda"};
  EXPECT_EQ(VerdictOn(rule, evidence).outcome, Outcome::kPassed);
}

TEST(JudgeTest, ASyncPointWithoutALineMayBeTheOneThatIsMeant) {
  MadeSync nowhere = SyncAt("", 0);
  nowhere.function = "";
  Evidence evidence = EvidenceOf({RunOf("job", {nowhere})});
  const Verdict verdict = VerdictOn("sync.calls_per_step(train.py) > 0", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("line is not known"));
  EXPECT_EQ(VerdictOn("sync.calls_per_step(train.py) > 2", evidence).outcome,
            Outcome::kPassed);
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 0", evidence).outcome, Outcome::kFailed);
  evidence = EvidenceOf({RunOf("job", {SyncAt("/job/train.py", 0)})});
  EXPECT_EQ(VerdictOn("sync.calls_per_step(train.py:4) > 0", evidence).outcome,
            Outcome::kCannotJudge);
  EXPECT_EQ(VerdictOn("sync.calls_per_step(other.py:4) > 0", evidence).outcome,
            Outcome::kPassed);
  // Twice as often as in the baseline: one of two may be new.
  MadeSync twice = nowhere;
  twice.calls = 2;
  const char* rule = "sync.calls_per_step(new) > 0";
  EXPECT_EQ(
      VerdictOn(rule, EvidenceOf({RunOf("job", {twice})}, {RunOf("old", {nowhere})}))
          .outcome,
      Outcome::kCannotJudge);
  EXPECT_EQ(
      VerdictOn(rule, EvidenceOf({RunOf("job", {nowhere})}, {RunOf("old", {twice})}))
          .outcome,
      Outcome::kPassed);
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
    EXPECT_THAT(verdict.rules[0].measured.why_not, Not(HasSubstr("no GPU call")));
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
  // Of several any may be new.
  EXPECT_EQ(VerdictOn("sync.calls_per_step(new) == 0.005", evidence).outcome,
            Outcome::kCannotJudge);
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

void SayCannotTell(compare::Run* run, std::vector<const char*> sentences) {
  run->whole.mutable_job()->mutable_imported()->set_format("torch.profiler");
  for (const char* sentence : sentences) {
    run->whole.mutable_job()->mutable_imported()->add_not_applied(sentence);
  }
  for (v1::ProcessRow& row : *run->whole.mutable_processes()) row.clear_gc_hook();
}

TEST(JudgeTest, WhatAnImportedTraceDoesNotHaveHasNotPassed) {
  const Evidence bare = EvidenceOfChanged(RunOf("job", {}), [](compare::Run* run) {
    SayCannotTell(run, {kImportHasNoGc, kImportHasNoData, kImportHasNoWaits});
  });
  const Evidence full = EvidenceOfChanged(
      RunOf("job", {}), [](compare::Run* run) { SayCannotTell(run, {}); });
  for (const char* metric :
       {"host.gil.ms_per_step", "host.lock.ms_per_step", "host.io.ms_per_step",
        "host.comm.ms_per_step", "host.sleep.ms_per_step", "host.process.ms_per_step",
        "cause.gil_wait.percent", "cause.run_queue.ms_per_step",
        "cause.host_wait.percent", "host.gc.ms_per_step", "host.data.ms_per_step",
        "cause.gc.percent", "cause.data.percent"}) {
    const std::string rule = absl::StrCat(metric, " > 1");
    const Verdict verdict = VerdictOn(rule, bare);
    EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge) << rule;
    EXPECT_THAT(verdict.rules[0].measured.why_not, HasSubstr("cannot tell it: "));
    const bool of_trace =
        absl::StrContains(metric, ".gc.") || absl::StrContains(metric, ".data.");
    EXPECT_EQ(VerdictOn(rule, full).outcome,
              of_trace ? Outcome::kPassed : Outcome::kCannotJudge)
        << rule;
  }
  for (const char* rule : {"sync.calls_per_step > 1", "host.sync.ms_per_step > 1",
                           "gpu.idle_percent > 99", "cause.sync.percent > 1"}) {
    EXPECT_EQ(VerdictOn(rule, bare).outcome, Outcome::kPassed) << rule;
  }
}

TEST(JudgeTest, HooksOfAProcessThatIsNotToldOfAreNotOn) {
  const Evidence evidence = EvidenceOfChanged(
      RunOf("job", {}),
      [](compare::Run* changed) { changed->whole.mutable_processes(0)->set_pid(999); });
  for (const char* rule : {"host.gc.ms_per_step > 1", "host.data.ms_per_step > 1"}) {
    EXPECT_EQ(VerdictOn(rule, evidence).outcome, Outcome::kCannotJudge) << rule;
  }
}

TEST(JudgeTest, OneRankIsNotDilutedByTheOthers) {
  MadeSync sync = SyncAt("/job/log.py", 3);
  sync.rank = 1;
  MadeRun run = RunOf("job", {sync});
  run.processes = 4;
  const Evidence evidence = EvidenceOf({run}, {RunOf("old", {})});
  const Verdict verdict = VerdictOn("sync.calls_per_step > 0.5", evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kFailed);
  EXPECT_EQ(*verdict.rules[0].measured.value, 1);
  EXPECT_EQ(verdict.rules[0].measured.of, "rank 1");
  ASSERT_THAT(verdict.rules[0].measured.parts, SizeIs(1));
  EXPECT_EQ(verdict.rules[0].measured.parts[0].value, 1);
  // One of 50 ms a step, half of it for nothing.
  for (const char* rule : {"sync.wasted_percent > 0.9", "sync.wasted_ms_per_step > 0.4",
                           "sync.blocked_ms_per_step > 0.9",
                           "host.sync.ms_per_step > 0.9", "sync.calls_per_step < 0.5",
                           "sync.calls_per_step == 0", "sync.calls_per_step == 1"}) {
    EXPECT_EQ(VerdictOn(rule, evidence).outcome, Outcome::kFailed) << rule;
  }
  EXPECT_EQ(VerdictOn("sync.calls_per_step < 0.5", evidence).rules[0].measured.of,
            "rank 0");
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 1", evidence).outcome, Outcome::kPassed);
  EXPECT_EQ(VerdictOn("sync.calls_per_step == 0.25", evidence).outcome,
            Outcome::kPassed);
  // With as many processes in the baseline, where another rank did it, it is not new.
  MadeRun old = run;
  old.name = "old";
  const char* rule = "sync.calls_per_step(new) > 0.5";
  EXPECT_EQ(VerdictOn(rule, EvidenceOf({run}, {old})).outcome, Outcome::kPassed);
  old.syncs = {};
  const Verdict came = VerdictOn(rule, EvidenceOf({run}, {old}));
  EXPECT_EQ(came.outcome, Outcome::kFailed);
  EXPECT_EQ(came.rules[0].measured.of, "rank 1");
  // One process has no rank to name.
  EXPECT_EQ(VerdictOn("sync.calls_per_step > 0.5", EvidenceOf({RunOf("job", {})}))
                .rules[0]
                .measured.of,
            "");
}

TEST(JudgeTest, StepsOfOneRankAreNotDilutedByTheOthers) {
  MadeRun run = RunOf("job", {});
  run.processes = 4;
  run.slower = {{2, 2}};
  MadeRun other = run;
  other.name = "other";
  for (const std::vector<MadeRun>& runs : {std::vector{run}, {run, other}}) {
    const Evidence evidence = EvidenceOf(runs);
    const Verdict slow = VerdictOn("step_ms > 90", evidence);
    EXPECT_EQ(slow.outcome, Outcome::kFailed);
    EXPECT_NEAR(*slow.rules[0].measured.value, 100, 5);
    EXPECT_EQ(slow.rules[0].measured.of, "rank 2");
    EXPECT_EQ(VerdictOn("step_ms > 110", evidence).outcome, Outcome::kPassed);
    EXPECT_EQ(VerdictOn("step_ms < 60", evidence).outcome, Outcome::kFailed);
    EXPECT_EQ(VerdictOn("step_ms < 40", evidence).outcome, Outcome::kPassed);
  }
}

TEST(JudgeTest, IdleTimeOfOneRankIsNotDilutedByTheOthers) {
  MadeRun run = RunOf("job", {});
  run.processes = 2;
  const Evidence evidence = EvidenceOfChanged(
      run, [](compare::Run*) {},
      [](compare::Run* changed) {
        v1::ReportReply& all = changed->replies[1].all;
        v1::CauseRow* row = all.mutable_gaps()->add_causes();
        row->set_cause(v1::GAP_CAUSE_DATA_WAIT);
        row->set_total_ns(all.gpu().traced_ns() / 2);
      });
  for (const char* rule : {"gpu.idle_percent > 40", "cause.data.percent > 40",
                           "cause.data.ms_per_step > 20"}) {
    const Verdict verdict = VerdictOn(rule, evidence);
    EXPECT_EQ(verdict.outcome, Outcome::kFailed) << rule;
    EXPECT_EQ(verdict.rules[0].measured.of, "rank 1");
  }
}

TEST(JudgeTest, MemoryFromBeforeTheRecordingIsNotNone) {
  auto evidence = [](const Change& change) {
    return EvidenceOfChanged(RunOf("job", {}), [&change](compare::Run* run) {
      v1::MemoryRow* row = run->whole.mutable_memory()->add_rows();
      row->set_allocator("cuda");
      row->set_peak_bytes(1 << 20);
      change(run);
    });
  };
  const char* rule = "memory.cuda.peak_mib > 1000";
  EXPECT_EQ(VerdictOn(rule, evidence([](compare::Run*) {})).outcome, Outcome::kPassed);
  const Verdict armed = VerdictOn(rule, evidence([](compare::Run* run) {
                                    run->whole.mutable_job()->set_partly_recorded(true);
                                  }));
  EXPECT_EQ(armed.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(armed.rules[0].measured.why_not,
              HasSubstr("not recorded from its start"));
  EXPECT_EQ(VerdictOn(rule, evidence([](compare::Run* run) {
                        run->whole.mutable_job()->set_attached(true);
                      }))
                .outcome,
            Outcome::kCannotJudge);
  // Calls for device memory are recorded in every step, tensors are not.
  const auto sampled = [](compare::Run* run) {
    run->whole.mutable_memory()->add_rows()->set_allocator("torch_cuda");
    run->whole.mutable_job()->set_steps_sampled(true);
  };
  EXPECT_EQ(VerdictOn(rule, evidence(sampled)).outcome, Outcome::kPassed);
  const Verdict of_tensors =
      VerdictOn("memory.torch_cuda.peak_mib > 1000", evidence(sampled));
  EXPECT_EQ(of_tensors.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(of_tensors.rules[0].measured.why_not, HasSubstr("steps were sampled"));
}

TEST(JudgeTest, WhatCameAfterTheStepsOfAShorterBaselineIsSeen) {
  MadeSync late = SyncAt("/job/log.py", 3);
  late.since = 100;
  late.function = "late";
  MadeRun run = RunOf("job", {late});
  run.steps = 600;
  MadeRun old = RunOf("old", {});
  old.steps = 60;
  const char* rule = "sync.calls_per_step(new) > 0";
  Verdict verdict = VerdictOn(rule, EvidenceOf({run}, {old}));
  EXPECT_NE(verdict.outcome, Outcome::kPassed);
  EXPECT_GT(verdict.runs[0].steps, 500U);
  old.syncs = {late};
  old.syncs[0].since = 0;
  EXPECT_EQ(VerdictOn(rule, EvidenceOf({run}, {old})).outcome, Outcome::kPassed);
  // Times are compared in the same steps, and a note says how many that leaves.
  EXPECT_THAT(
      VerdictOn("step_ms.change_percent > 5", EvidenceOf({run}, {old})).warnings,
      Contains(HasSubstr("steady steps of job (job00000) are left out")));
}

// An edit, or another sync that took its place: it passes, and is not passed over.
TEST(JudgeTest, WhatIsTakenForAnEditedLineIsTold) {
  MadeSync was = SyncAt("/job/train.py", 10), is = SyncAt("/job/train.py", 12);
  was.above = is.above = "seen += len(batch)";
  was.text = is.text = "mean += loss.item()";
  const char* rule = "sync.calls_per_step(new) > 0";
  auto told = [&] {
    return VerdictOn(rule, EvidenceOf({RunOf("job", {is})}, {RunOf("old", {was})}));
  };
  EXPECT_THAT(told().warnings, Not(Contains(HasSubstr("reads otherwise"))));
  is.text = "mean += grad.item()";
  EXPECT_EQ(told().outcome, Outcome::kPassed);
  EXPECT_THAT(told().warnings,
              Contains("the sync at /job/train.py:12 is taken for that of the baseline "
                       "at /job/train.py:10, whose line reads otherwise: edited, or "
                       "replaced by one like it"));
}

TEST(JudgeTest, AJobThatFailedHasNotPassed) {
  MadeRun run = RunOf("job", {});
  run.exit_status = 137;
  const Evidence evidence = EvidenceOf({run});
  const char* rule = "sync.calls_per_step > 0";
  const Verdict verdict = VerdictOn(rule, evidence);
  EXPECT_EQ(verdict.outcome, Outcome::kCannotJudge);
  EXPECT_THAT(verdict.rules[0].measured.why_not,
              HasSubstr("ended with exit status 137"));
  EXPECT_EQ(
      Judge({std::get<Rule>(ParseRule(rule))}, evidence, {{}, true}, kToday).outcome,
      Outcome::kPassed);
}

}  // namespace
}  // namespace lull::check
