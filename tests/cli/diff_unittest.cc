#include "cli/render/diff.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/golden.h"

namespace lull {
namespace {

using compare::Change;
using compare::Comparison;
using compare::RunFacts;
using compare::SyncChange;
using compare::SyncRate;
using compare::Verdict;
using ::testing::HasSubstr;
using ::testing::StartsWith;

SyncRate At(const char* file, int line, const char* function, double rate,
            double blocked_ms) {
  SyncRate told;
  told.site.set_file(file);
  told.site.set_line(line);
  told.site.set_function(function);
  told.api = "cudaMemcpyAsync";
  told.calls_per_step = rate;
  told.calls = static_cast<uint64_t>(rate * 1950);
  told.blocked_ms_per_step = blocked_ms;
  told.wasted_ms_per_step = blocked_ms / 2;
  return told;
}

constexpr char kAggregation[] =
    "/venv/lib/python3.11/site-packages/torchmetrics/aggregation.py";

RunFacts RunOf(const char* name, const char* id, double step_ms) {
  RunFacts run;
  run.job.set_id(id);
  run.job.set_name(name);
  run.job.set_command("python train.py");
  run.steps = 390;
  run.dropped = 10;
  run.processes = 1;
  run.step_ms = step_ms;
  return run;
}

// Five runs a side: two syncs of TorchMetrics went.
Comparison Fixed() {
  Comparison comparison;
  for (int i = 0; i < 5; ++i) {
    comparison.a.push_back(RunOf("naive", "aaaaaaaa00", 47.2));
    comparison.b.push_back(RunOf("mended", "bbbbbbbb00", 41.4));
  }
  comparison.verdict = Verdict::kFaster;
  comparison.traced_steps = true;
  comparison.step.emplace();
  comparison.step->a_ms = 47.2;
  comparison.step->b_ms = 41.4;
  comparison.step->mean_a_ms = 47.9;
  comparison.step->mean_b_ms = 42;
  comparison.step->change = Change{-12.29, -13.4, -11.2, 1.6};
  comparison.step->known = true;
  comparison.step->spread_percent = 0.62;
  comparison.step->asked_percent = 2;
  comparison.step->runs_needed = 4;
  comparison.syncs.gone = {
      {At(kAggregation, 90, "_cast_and_nan_check_input", 1, 4.1), {}},
      {At(kAggregation, 562, "update", 1, 2.2), {}}};
  comparison.syncs.changed = {{At("/job/train.py", 40, "log", 1, 0.5),
                               At("/job/train.py", 44, "log", 0.1, 0.06)}};
  comparison.syncs.moved = {{At("/job/train.py", 70, "save", 0.5, 0.1),
                             At("/job/saving.py", 8, "save", 0.5, 0.1)}};
  comparison.syncs.same.resize(3);
  comparison.causes = {{v1::GAP_CAUSE_SYNC, {6.4, 0.3, -6.3, -5.9}},
                       {v1::GAP_CAUSE_GC, {0.4, 0.401, -0.01, 0.01}}};
  comparison.host = {{"sync", {6.9, 0.8, -6.3, -5.9}}, {"data", {1, 1.3, -0.2, 0.8}}};
  comparison.kernels = {{"void at::native::elementwise_kernel<float>(int, float*)",
                         {3, 2.5, -0.6, -0.4},
                         {9, 8, 0, 0}}};
  v1::Site update;
  update.set_file(kAggregation);
  update.set_line(88);
  update.set_function("update");
  comparison.functions = {{update, {2.2, 0.9, {}, {}}}};
  comparison.memory = {{"torch_cuda", {3e9, 2e9, {}, {}}, {4e9, 4e9, {}, {}}},
                       {"pinned", {1e6, 1e6, {}, {}}, {}}};
  comparison.warnings = {"the hosts differ (A: one; B: other)"};
  return comparison;
}

TEST(DiffTest, TextIsAsInTheGoldenFile) {
  testing::ExpectGolden("diff", DiffText(Fixed(), 10));
}

TEST(DiffTest, OneRunASideIsAsInTheGoldenFile) {
  Comparison comparison = Fixed();
  comparison.a.resize(1);
  comparison.b.resize(1);
  comparison.verdict = Verdict::kSyncsChanged;
  comparison.step->known = false;
  comparison.step->runs_needed.reset();
  comparison.step->spread_percent.reset();
  for (auto& row : comparison.causes) row.ms.low = row.ms.high = std::nullopt;
  for (auto& row : comparison.host) row.ms.low = row.ms.high = std::nullopt;
  for (auto& row : comparison.kernels) row.ms.low = row.ms.high = std::nullopt;
  comparison.warnings = {"one run a side cannot tell how runs of one program differ"};
  testing::ExpectGolden("diff_one_run", DiffText(comparison, 10));
}

TEST(DiffTest, TheFirstLineSaysFasterOrSlowerWithoutASign) {
  Comparison comparison = Fixed();
  comparison.syncs = {};
  EXPECT_EQ(DiffHeadline(comparison), "B is 12.3 % ± 1.1 faster");
  comparison.verdict = Verdict::kSlower;
  comparison.step->change = Change{5, 4, 6, 1};
  EXPECT_EQ(DiffHeadline(comparison), "B is 5.0 % ± 1.0 slower");
}

TEST(DiffTest, WhatIsNotShownIsNotCalledFaster) {
  Comparison comparison = Fixed();
  comparison.syncs = {};
  comparison.verdict = Verdict::kNoDifference;
  comparison.step->change = Change{-0.3, -1, 0.4, 1.4};
  EXPECT_EQ(DiffHeadline(comparison),
            "no difference that these runs can show; they could have shown 1.4 %");
  comparison.step->change = Change{-3, -8, 2, 9};
  comparison.step->runs_needed = 31;
  EXPECT_EQ(
      DiffHeadline(comparison),
      "no difference that these runs can show; 2 % would take about 31 runs a side");
  comparison.step->runs_needed.reset();
  EXPECT_THAT(DiffHeadline(comparison), HasSubstr("over 1,000 runs"));
  comparison.step->known = false;
  comparison.step->change = Change{-40, -41, -39, 1};
  EXPECT_EQ(
      DiffHeadline(comparison),
      "no difference that these runs can show; B's steps took 40.0 % less in these "
      "runs, which does not show that B is faster");
}

TEST(DiffTest, LargeNumbersHaveAllTheirDigits) {
  EXPECT_EQ(Digits(0, 3), "0");
  EXPECT_EQ(Digits(0.3684, 2), "0.37");
  EXPECT_EQ(Digits(99.4, 2), "99");
  EXPECT_EQ(Digits(99.7, 2), "100");
  EXPECT_EQ(Digits(2160.4, 3), "2,160");
  EXPECT_EQ(Digits(1e300, 3), "1e+300");
  Comparison comparison = Fixed();
  comparison.step->change->detectable_percent = 220;
  comparison.syncs.gone[0].a.calls_per_step = 1200;
  const std::string text = DiffText(comparison, 10);
  EXPECT_THAT(text, HasSubstr("show a change of 220 %"));
  EXPECT_THAT(text, HasSubstr(" 1,200 "));
}

TEST(DiffTest, ALineThatMakesTwoCallsIsOnePlace) {
  Comparison comparison = Fixed();
  comparison.syncs.changed.clear();
  comparison.syncs.gone.push_back(comparison.syncs.gone[0]);
  comparison.syncs.gone.back().a.api = "cudaStreamSynchronize";
  EXPECT_EQ(DiffHeadline(comparison),
            "B is 12.3 % ± 1.1 faster; two syncs gone (torchmetrics/aggregation.py:90, "
            ":562)");
}

TEST(DiffTest, ManyPlacesAreCounted) {
  Comparison comparison = Fixed();
  comparison.syncs = {};
  for (int line = 1; line <= 12; ++line) {
    comparison.syncs.came.push_back({{}, At("/job/t.py", line, "f", 1, 1)});
  }
  EXPECT_EQ(DiffHeadline(comparison),
            "B is 12.3 % ± 1.1 faster; 12 syncs new (/job/t.py:1, :2, :3, :4, 8 more)");
}

TEST(DiffTest, WithoutStepsThereIsTheReasonAndNothingElse) {
  Comparison comparison;
  comparison.a = {RunOf("one", "1", 0)};
  comparison.b = {RunOf("two", "2", 0)};
  comparison.reasons = {"no steps were seen in one", "the GPUs differ"};
  const std::string text = DiffText(comparison, 10);
  EXPECT_THAT(text,
              StartsWith("cannot be judged: no steps were seen in one; the GPUs"));
  EXPECT_EQ(text.find("Sync points"), std::string::npos);
  const Json json = DiffJson(comparison, 10);
  EXPECT_EQ(json["verdict"], "cannot_judge");
  EXPECT_TRUE(json["step_ms"].is_null());
  EXPECT_EQ(json["reasons"].size(), 2);
}

TEST(DiffTest, JsonHasTheKeysThatProgramsReadItBy) {
  const Json json = DiffJson(Fixed(), 10);
  EXPECT_EQ(json["verdict"], "faster");
  EXPECT_EQ(json["step_ms"]["a"], 47.2);
  EXPECT_EQ(json["step_ms"]["b"], 41.4);
  EXPECT_EQ(json["step_ms"]["change_percent"], -12.29);
  EXPECT_EQ(json["step_ms"]["low_percent"], -13.4);
  EXPECT_EQ(json["step_ms"]["high_percent"], -11.2);
  EXPECT_EQ(json["sync_points"]["gone"].size(), 2);
  EXPECT_EQ(json["sync_points"]["gone"][1]["site"]["line"], 562);
  EXPECT_TRUE(json["sync_points"]["gone"][1]["b_site"].is_null());
  EXPECT_EQ(json["sync_points"]["changed"][0]["b_site"]["line"], 44);
  EXPECT_EQ(json["sync_points"]["new"].size(), 0);
  EXPECT_EQ(json["causes"][0]["cause"], "sync");
  EXPECT_EQ(json["causes"][0]["a_ms_per_step"], 6.4);
  EXPECT_EQ(json["causes"][0]["b_ms_per_step"], 0.3);
  EXPECT_EQ(json["kernels"][0]["b_calls_per_step"], 8);
  EXPECT_EQ(DiffJson(Fixed(), 0)["functions"].size(), 1);
}

TEST(DiffTest, KernelsOfOneTemplateAreToldApart) {
  Comparison comparison = Fixed();
  auto add = [](const std::string& of) {
    const std::string arguments = "at::native::CUDAFunctor_add<" + of + ">";
    return "void at::native::vectorized_elementwise_kernel<4, " + arguments +
           ", std::array<char*, 3ul> >(int, " + arguments + ", std::array<char*, 3ul>)";
  };
  comparison.kernels = {{add("long"), {0, 2, 2, 2}, {0, 1, 1, 1}},
                        {add("float"), {0, 2, 2, 2}, {0, 1, 1, 1}}};
  const std::string text = DiffText(comparison, 10);
  for (const char* of : {"long", "float"}) {
    EXPECT_THAT(text, HasSubstr(std::string("  vectorized_elementwise_kernel<4, "
                                            "CUDAFunctor_add<") +
                                of + ">"));
  }
}

TEST(DiffTest, ASyncWhoseLineReadsOtherwiseIsNotAsBefore) {
  Comparison comparison = Fixed();
  comparison.syncs.same[1] = {At("/job/train.py", 20, "loss", 1, 0.2),
                              At("/job/train.py", 21, "loss", 1, 0.2), false, true};
  const std::string text = DiffText(comparison, 10);
  EXPECT_THAT(text, HasSubstr("  edited         1        1     200 us     200 us"));
  EXPECT_THAT(text, HasSubstr("/job/train.py:20 loss → /job/train.py:21 loss"));
  EXPECT_THAT(text, HasSubstr("  2 more sync points are as before\n"));
  EXPECT_THAT(text, HasSubstr("  edited: as many calls, of a line that reads "));
  const auto json = DiffJson(comparison, 10)["sync_points"];
  EXPECT_EQ(json["same"][0]["edited"], false);
  EXPECT_EQ(json["same"][1]["edited"], true);
}

TEST(DiffTest, NamesOfHostileProgramsSteerNoTerminal) {
  Comparison comparison = Fixed();
  comparison.a[0].job.set_name("\x1b[31mred");
  comparison.syncs.gone[0].a.site.set_file("/job/\x1b[2Jx.py");
  comparison.syncs.gone[0].a.site.set_function(std::string(1 << 16, 'f') + "\n::error");
  comparison.kernels[0].name = "\x1b]0;t\x07";
  comparison.host[0].what = "\x1b[1m";
  comparison.memory[0].allocator = "\x1b[1m";
  const std::string text = DiffText(comparison, 10);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_EQ(text.find("\n::"), std::string::npos);
  EXPECT_LT(text.size(), 8000);
}

}  // namespace
}  // namespace lull
